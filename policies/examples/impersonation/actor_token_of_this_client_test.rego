package surrogate.impersonation_test

import data.surrogate.impersonation

of_another_client(actor) if {
	"actor_token_of_another_client" in impersonation.deny with input as {
		"stage": "exchange",
		"client": {"id": "desk"},
		"actor": actor,
	}
}

test_a_token_of_another_client_is_refused if of_another_client({"id": "a1", "clientId": "shop"})

test_an_unknown_client_is_another if of_another_client({"id": "a1"})

test_a_token_of_this_client_is_not if not of_another_client({"id": "a1", "clientId": "desk"})
