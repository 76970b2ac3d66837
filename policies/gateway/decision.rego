# METADATA
# title: Gateway decision
# description: |
#   The policy of every route that names no other entrypoint. To add a rule, write one more file in this package with
#   `deny contains {"reason": "…", "detail": "…"} if { … }`; of several objections the first in Rego's order answers.
#   The schema below lets `surrogate policy check` find misspelt input in every file of the package.
# scope: package
# schemas:
#   - input: schema.gateway
package surrogate.gateway

# A missing scope answers before any objection (401: another token helps). Every branch, `allow` above all, needs something to be
# true: what is undefined never allows.

# METADATA
# entrypoint: true
decision := {"allow": false, "reason": "insufficient_scope", "scope": input.route.scopes} if {
	scope_missing
} else := object.union(objections[0], {"allow": false}) if {
	count(objections) > 0
} else := {"allow": true} if {
	is_array(input.route.scopes)
	count(deny) == 0
}

scope_missing if {
	some scope in input.route.scopes
	not granted(scope)
}

# A rule of its own: `not scope in input.token.scopes` would be undefined, and so not missing, when there is no token.
granted(scope) if scope in input.token.scopes

objections := [objection | some objection in deny]

deny contains {"reason": "impersonation_denied"} if not impersonation_permitted

impersonation_permitted if not input.actor

impersonation_permitted if input.route.impersonation == "allow"

impersonation_permitted if {
	input.route.impersonation == "read-only"
	only_reads
}

# A person may allow others to read in their name and nothing more; then the token says so, with or without an actor.
deny contains {"reason": "impersonation_denied"} if {
	input.token.claims.access == "read"
	not only_reads
}

only_reads if input.request.method in {"GET", "HEAD", "OPTIONS"}
