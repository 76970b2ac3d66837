package surrogate.impersonation_test

import data.surrogate.impersonation

missing(asked) := reasons if {
	reasons := impersonation.deny & {"reason_required", "ticket_required"} with input as asked
}

test_both_are_needed if missing({"stage": "mint"}) == {"reason_required", "ticket_required"}

test_blanks_are_no_reason if missing({"stage": "mint", "reason": " ", "ticket": "T-1"}) == {"reason_required"}

test_a_ticket_has_its_form if missing({"stage": "mint", "reason": "x", "ticket": "1"}) == {"ticket_required"}

test_with_both_nothing_is_missing if {
	missing({"stage": "mint", "reason": "wrong invoice", "ticket": "T-1"}) == set()
	missing({"stage": "exchange", "reason": "wrong invoice", "ticket": "T-1"}) == set()
}
