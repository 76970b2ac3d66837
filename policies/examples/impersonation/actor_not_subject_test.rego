package surrogate.impersonation_test

import data.surrogate.impersonation

acts_for_themselves(actor) if {
	"actor_is_subject" in impersonation.deny with input as {"stage": "exchange", "subject": {"id": "u1"}, "actor": actor}
}

test_acting_for_oneself_is_refused if acts_for_themselves({"id": "u1", "chain": ["u1"]})

test_also_through_somebody_else if acts_for_themselves({"id": "a1", "chain": ["a1", "u1"]})

test_acting_for_another_is_not if not acts_for_themselves({"id": "a1", "chain": ["a1", "a2"]})
