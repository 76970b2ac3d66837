# Impersonation ends soon: after 15 minutes, and after 5 for users that need more care. A resource with a shorter life keeps it.
package surrogate.impersonation

max_ttl contains 900

max_ttl contains 300 if "vip" in input.subject.roles
