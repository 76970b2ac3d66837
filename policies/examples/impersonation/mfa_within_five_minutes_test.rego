package surrogate.impersonation_test

import data.surrogate.impersonation

steps_up(question) if {
	impersonation.step_up[{"acr_values": ["urn:surrogate:acr:mfa", "urn:surrogate:acr:phr"], "max_age": 300}] with input as question
}

staff(acr, auth_time) := {"id": "a1", "via": "sign_in", "acr": acr, "auth_time": auth_time}

mfa := "urn:surrogate:acr:mfa"

test_mfa_a_moment_ago_is_enough if {
	every acr in [mfa, "urn:surrogate:acr:phr"] {
		not steps_up({"stage": "exchange", "actor": staff(acr, 700), "now": 1000})
	}
}

test_mfa_long_ago_is_not if steps_up({"stage": "exchange", "actor": staff(mfa, 699), "now": 1000})

test_a_password_is_not if steps_up({"stage": "exchange", "actor": staff("urn:surrogate:acr:basic", 999), "now": 1000})

test_nobody_is_not if steps_up({"stage": "exchange", "now": 1000})

test_a_token_that_does_not_come_of_signing_in_is_not if {
	steps_up({"stage": "exchange", "actor": {"id": "a1", "via": "personal_access_token"}, "now": 1000})
}

test_minting_asks_where_the_actor_is_known if {
	steps_up({"stage": "mint", "actor": staff(mfa, 1), "now": 1000})
	not steps_up({"stage": "mint", "actor": {"id": "a1"}, "now": 1000})
	not steps_up({"stage": "mint", "actor": staff(mfa, 1), "approval": {"id": "r1"}, "now": 1000})
}
