package surrogate.impersonation_test

import data.surrogate.impersonation

must_sign_in(actor) if {
	"actor_must_sign_in" in impersonation.deny with input as {"stage": "exchange", "actor": actor}
}

test_weaker_proof_is_refused if {
	must_sign_in({"id": "a1", "via": "subject_token"})
	must_sign_in({"id": "a1", "via": "personal_access_token"})
	must_sign_in({"id": "a1"})
}

test_signing_in_is_enough if not must_sign_in({"id": "a1", "via": "sign_in"})
