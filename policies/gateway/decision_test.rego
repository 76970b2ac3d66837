package surrogate.gateway_test

import data.surrogate.gateway

request(method, scopes, impersonation) := {
	"version": 1,
	"request": {"method": method, "path": "/orders/42", "segments": ["orders", "42"]},
	"route": {"id": "orders", "scopes": scopes, "impersonation": impersonation},
	"token": {"scopes": ["read:orders", "write:orders"]},
	"subject": {"id": "u1"},
}

acting(method, impersonation) := object.union(
	request(method, ["read:orders"], impersonation),
	{"actor": {"id": "s1", "chain": ["s1"]}},
)

test_allows_with_every_scope if {
	gateway.decision == {"allow": true} with input as request("GET", ["read:orders", "write:orders"], "deny")
}

test_allows_a_route_without_scopes if {
	gateway.decision == {"allow": true} with input as request("GET", [], "deny")
}

test_allows_a_public_route_without_token if {
	gateway.decision == {"allow": true} with input as object.remove(request("GET", [], "deny"), ["token", "subject"])
}

test_refuses_a_missing_scope_and_names_what_is_needed if {
	gateway.decision == {
		"allow": false,
		"reason": "insufficient_scope",
		"scope": ["read:orders", "delete:orders"],
	} with input as request("GET", ["read:orders", "delete:orders"], "allow")
}

test_scopes_are_exact if {
	some near in ["read", "read:order", "read:orders:all", "READ:ORDERS", "read:*", "*", ""]
	gateway.decision.reason == "insufficient_scope" with input as request("GET", [near], "allow")
}

test_refuses_scopes_without_token if {
	gateway.decision.reason == "insufficient_scope" with input as object.remove(
		request("GET", ["read:orders"], "allow"),
		["token"],
	)
}

test_impersonation_allow if {
	every method in ["GET", "POST", "DELETE"] {
		gateway.decision == {"allow": true} with input as acting(method, "allow")
	}
}

test_impersonation_deny if {
	every method in ["GET", "POST"] {
		gateway.decision == {"allow": false, "reason": "impersonation_denied"} with input as acting(method, "deny")
	}
}

test_impersonation_read_only if {
	every method in ["GET", "HEAD", "OPTIONS"] {
		gateway.decision == {"allow": true} with input as acting(method, "read-only")
	}
	every method in ["POST", "PUT", "PATCH", "DELETE", "get", "PROPFIND"] {
		gateway.decision == {"allow": false, "reason": "impersonation_denied"} with input as acting(method, "read-only")
	}
}

test_impersonation_unknown_rule_denies if {
	gateway.decision.allow == false with input as acting("GET", "alow")
}

test_impersonation_rules_do_not_touch_the_person_itself if {
	gateway.decision == {"allow": true} with input as request("DELETE", ["read:orders"], "deny")
}

reading(method, impersonation) := object.union(
	acting(method, impersonation),
	{"token": {"scopes": ["read:orders"], "claims": {"access": "read"}}},
)

test_a_token_that_only_reads_reads_where_the_route_permits_it if {
	every impersonation in ["allow", "read-only"] {
		every method in ["GET", "HEAD", "OPTIONS"] {
			gateway.decision == {"allow": true} with input as reading(method, impersonation)
		}
		every method in ["POST", "PUT", "PATCH", "DELETE", "get", "PROPFIND"] {
			gateway.decision == {"allow": false, "reason": "impersonation_denied"} with input as reading(
				method,
				impersonation,
			)
		}
	}
	gateway.decision == {"allow": false, "reason": "impersonation_denied"} with input as reading("GET", "deny")
}

test_a_token_that_only_reads_does_so_without_an_actor_too if {
	alone := object.remove(reading("POST", "allow"), ["actor"])
	gateway.decision == {"allow": false, "reason": "impersonation_denied"} with input as alone
}

test_another_access_claim_means_nothing if {
	every access in ["write", "", ["read"], null] {
		gateway.decision == {"allow": true} with input as object.union(
			acting("POST", "allow"),
			{"token": {"scopes": ["read:orders"], "claims": {"access": access}}},
		)
	}
}

test_a_missing_scope_answers_before_impersonation if {
	gateway.decision.reason == "insufficient_scope" with input as object.union(
		acting("POST", "deny"),
		{"token": {"scopes": []}},
	)
}

test_an_objection_denies_with_its_own_words if {
	gateway.decision == {
		"allow": false,
		"reason": "office_hours",
		"detail": "Refunds only in office hours.",
	} with input as request("GET", [], "deny")
		with data.surrogate.gateway.deny as {{"reason": "office_hours", "detail": "Refunds only in office hours."}}
}

test_an_objection_cannot_allow if {
	gateway.decision.allow == false with input as request("GET", [], "deny")
		with data.surrogate.gateway.deny as {{"reason": "odd", "allow": true}}
}

test_no_input_is_no_decision if {
	not gateway.decision with input as {}
	not gateway.decision with input as {"route": {"scopes": "read:orders"}}
}
