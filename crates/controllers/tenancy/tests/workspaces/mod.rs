// SPDX-License-Identifier: Apache-2.0
//! The tests of Workspaces: one list, played in two worlds. Ring 2 is the embedded API server on a paused clock, ring 4
//! the real one with the real garbage collector and namespace controller. A test may not know where it runs.

pub mod access;
pub mod crash;
pub mod drift;
pub mod input;
pub mod namespaces;
pub mod provisioning;
pub mod stage;
pub mod trouble;

/// Makes a test of each function, run the way the world wants it.
macro_rules! suite {
    ($($module:ident: $($test:ident),+ $(,)?;)+) => {
        $(mod $module {
            $(#[test]
            fn $test() {
                crate::world::run(crate::workspaces::$module::$test());
            })+
        })+
    };
}

/// Every test that both worlds can play.
macro_rules! every_test {
    () => {
        crate::workspaces::suite! {
            access: users_groups_and_service_accounts_get_exactly_their_role;
            crash: dying_at_any_write_leads_to_the_same_end;
            drift: edits_are_undone_but_what_others_add_stays, fields_of_another_manager_stay, deleted_children_come_back;
            input: wrong_input_is_refused_with_the_path_and_the_rule, the_namespace_cannot_be_changed;
            namespaces: a_foreign_namespace_is_left_alone_and_taken_when_it_is_gone,
                of_two_workspaces_for_one_namespace_the_later_waits,
                of_two_workspaces_made_at_once_exactly_one_gets_the_namespace,
                a_deleted_namespace_is_made_again_with_everything_in_it,
                a_workspace_made_again_under_its_old_name_gets_a_fresh_namespace;
            provisioning: a_workspace_gets_everything_it_asks_for, a_removed_member_loses_binding_and_label,
                quota_and_limits_go_with_their_fields, the_policy_goes_when_isolation_is_turned_off,
                a_namespace_is_chosen_when_none_is_asked_for,
                a_settled_workspace_is_left_in_peace_even_by_a_new_operator, the_namespace_goes_with_its_workspace;
            trouble: a_mesh_comes_and_goes_without_a_moment_of_no_isolation,
                an_object_that_cannot_be_read_says_so_and_stops_nobody,
                the_operator_waits_for_its_kind_and_stops_at_once_meanwhile,
                a_child_of_somebody_else_is_told_and_not_fought_over;
        }
    };
}

pub(crate) use {every_test, suite};
