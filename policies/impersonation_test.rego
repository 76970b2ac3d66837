package surrogate.impersonation_test

import data.surrogate.impersonation

test_allows_minting if {
	impersonation.decision == {"allow": true} with input as {"version": 1, "stage": "mint", "subject": {"id": "u1"}}
}

test_allows_exchange if {
	impersonation.decision == {"allow": true} with input as {"version": 1, "stage": "exchange", "subject": {"id": "u1"}}
}
