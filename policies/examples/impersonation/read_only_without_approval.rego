# Without the customer's approval whoever acts may look and not touch: the token has the claim `access: "read"`, and gateways let it read
# only.
package surrogate.impersonation

read_only if not input.approval
