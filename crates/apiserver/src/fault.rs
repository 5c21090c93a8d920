// SPDX-License-Identifier: Apache-2.0
//! Small wrong behaviours, one at a time: `cargo xtask conformance --faults` shows that the cases notice each of them.
//!
//! They exist only with the feature `faults`, which no shipped binary has. Without it every point is `false` at compile
//! time.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether this fault is on.
macro_rules! fault {
    ($name:ident) => {
        $crate::fault::Fault::$name.is_on()
    };
}

macro_rules! faults {
    ($($name:ident $area:literal $text:literal)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault { $($name),* }

        impl Fault {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Where cases that notice it are most likely.
            pub fn area(self) -> &'static str {
                match self { $(Self::$name => $area),* }
            }

            /// What goes wrong.
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }
        }
    };
}

faults! {
    LostEvent "watch" "a watch does not tell of changes"
    EarlyBookmark "watch" "the first events of a watch end without saying so"
    LeavingUnseen "watch" "an object that leaves the view of a selector is not deleted there"
    OldListRevision "watch" "a list has the revision of the beginning"
    PageRepeats "list" "the next page begins with the last object of this one"
    NotEqualIsEqual "list" "!= selects what = does"
    NotInWantsLabel "list" "notin leaves out objects without the label"
    FieldsIgnored "list" "a field selector selects all"
    PreconditionIgnored "delete" "a deletion does not look at its preconditions"
    FinalizersIgnored "delete" "a deletion does not wait for finalizers"
    PropagationIgnored "delete" "a deletion does not look at its propagation policy"
    GraceIgnored "delete" "a wanted grace period is not granted"
    OwnerAssumed "delete" "an owner that is not found counts as living"
    BlockIgnored "delete" "a dependent cannot block the deletion of its owner"
    StaleUpdate "errors" "an update of an old version succeeds"
    WrongCode "errors" "what exists is answered with 422"
    WrongName "errors" "an object may have another name than its path"
    NoSuffix "errors" "generated names are the bare prefix"
    DryRunStores "errors" "a dry run creates"
    GenerationStays "crd" "changes do not count the generation"
    StatusTogether "crd" "an update writes the status, too"
    PruningOff "crd" "unknown fields stay"
    DefaultsOff "crd" "defaults are not filled in"
    RequiredUnchecked "crd" "required fields may be absent"
    EnumUnchecked "crd" "values need not be among the allowed ones"
    PatternUnchecked "crd" "texts need not match their pattern"
    DuplicatesAllowed "crd" "a set may hold a value twice"
    StrictLenient "crd" "fieldValidation=Strict only warns"
    RulesIgnored "cel" "rules are not evaluated"
    TransitionsIgnored "cel" "rules do not know the old object"
    ConflictUnreported "apply" "an apply takes what others own"
    ForceIgnored "apply" "a forced apply is refused"
    DroppedStays "apply" "what an applier gives up stays"
    AtomicMerged "apply" "an atomic struct is merged field by field"
    SubresourceLost "apply" "managers do not say through which subresource"
    MergeKeyIgnored "patch" "a strategic merge replaces lists"
    RetainKeysIgnored "patch" "$retainKeys keeps all"
    TestIgnored "patch" "a JSON patch tests nothing"
    NullKept "patch" "a merge patch does not delete"
    AllAllowed "access" "everybody may do everything"
    EscalationAllowed "access" "anybody can grant what they do not have"
    QuotaUncounted "access" "quotas hold nothing back"
    ShortNamesMissing "discovery" "resources have no short names"
    WrongCell "discovery" "the first cell of a table is empty"
}

/// The number of the fault that is on, counted from one.
static ON: AtomicUsize = AtomicUsize::new(0);

impl Fault {
    pub(crate) fn is_on(self) -> bool {
        cfg!(feature = "faults") && ON.load(Ordering::Relaxed) == self as usize + 1
    }
}

/// Switches one fault on, for all servers of this process, and every other off.
pub fn switch(fault: Option<Fault>) {
    ON.store(fault.map_or(0, |fault| fault as usize + 1), Ordering::Relaxed);
}
