package surrogate.impersonation_test

import data.surrogate.impersonation

test_an_exchange_without_actor_is_refused if {
	"actor_required" in impersonation.deny with input as {"stage": "exchange"}
}

test_with_an_actor_it_is_not if {
	not "actor_required" in impersonation.deny with input as {"stage": "exchange", "actor": {"id": "a1"}}
}

test_minting_needs_none if {
	not "actor_required" in impersonation.deny with input as {"stage": "mint"}
}
