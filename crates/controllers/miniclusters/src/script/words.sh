# SPDX-License-Identifier: Apache-2.0
# Splits a text into the array argv. Blanks part words; quotes and backslashes protect; $NAME and ${NAME} become their
# value. Nothing is run and no file name is matched, so that a command reaches the job as it was written.
words() {
    local LC_ALL=C op_text=$1 op_word='' op_some='' op_within='' op_run op_char op_value
    argv=()
    while [ -n "$op_text" ]; do
        case $op_within in
        \') op_run=${op_text%%\'*} ;;
        \") op_run=${op_text%%[\"\\\$]*} ;;
        *) op_run=${op_text%%[[:space:]\"\'\\\$]*} ;;
        esac
        if [ -n "$op_run" ]; then
            op_word+=$op_run
            op_some=1
            op_text=${op_text:${#op_run}}
            continue
        fi
        op_char=${op_text:0:1}
        op_text=${op_text:1}
        case $op_within$op_char in
        \'\' | \"\") op_within='' ;;
        \' | \")
            op_within=$op_char
            op_some=1
            ;;
        *\\)
            op_char=${op_text:0:1}
            op_text=${op_text:1}
            # Between double quotes a backslash protects only what is special there.
            case $op_within$op_char in
            *$'\n') continue ;;
            \"[!\"\\\$\`]*) op_word+=\\ ;;
            esac
            op_word+=$op_char
            op_some=1
            ;;
        *\$)
            if [[ $op_text =~ ^([A-Za-z_][A-Za-z0-9_]*) || $op_text =~ ^\{([A-Za-z_][A-Za-z0-9_]*)\} ]]; then
                op_text=${op_text:${#BASH_REMATCH[0]}}
                op_value=${!BASH_REMATCH[1]-}
                # As in a shell, a value outside quotes may be several words.
                while [ -z "$op_within" ] && [[ $op_value == *[[:space:]]* ]]; do
                    op_run=${op_value%%[[:space:]]*}
                    op_value=${op_value:${#op_run}+1}
                    if [ -n "$op_some$op_run" ]; then argv+=("$op_word$op_run"); fi
                    op_word=''
                    op_some=''
                done
                op_word+=$op_value
                if [ -n "$op_value" ]; then op_some=1; fi
            else
                op_word+=\$
                op_some=1
            fi
            ;;
        *)
            if [ -n "$op_some" ]; then argv+=("$op_word"); fi
            op_word=''
            op_some=''
            ;;
        esac
    done
    if [ -n "$op_some" ]; then argv+=("$op_word"); fi
}
