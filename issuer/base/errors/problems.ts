import { type ProblemTable, problemsOf } from '../../../platform/problem.ts'

/**
 * Every error that a caller of the Management API may see: `code → status, title`. Codes follow its convention
 * (`area.what`) and are stable; `docs/errors.md` has them too, and a test keeps the two in step.
 */
export const problems = {
  // Requests
  'guard.invalid_input': [400, 'The request is not valid.'],
  'request.invalid_input': [400, 'The search is not valid.'],
  'guard.invalid_pagination': [400, 'The pagination is not valid.'],
  'guard.invalid_json': [400, 'The request body is not valid JSON.'],
  'guard.body_too_large': [413, 'The request body is too large.'],
  'guard.unsupported_media_type': [415, 'The content type is not supported.'],
  'guard.not_found': [404, 'There is no such route.'],
  'guard.method_not_allowed': [405, 'The method is not allowed here.'],
  // Callers
  'auth.authorization_header_missing': [401, 'The Authorization header is missing.'],
  'auth.authorization_token_type_not_supported': [401, 'The authorization scheme is not supported.'],
  'auth.unauthorized': [401, 'The access token is not valid.'],
  'auth.jwt_sub_missing': [401, 'The access token has no subject.'],
  'session.invalid_credentials': [422, 'The credentials are not right.'],
  'idempotency.mismatch': [422, 'The idempotency key was used for another request.'],
  'idempotency.in_progress': [409, 'The first request with this idempotency key is still running.'],
  'auth.session_not_allowed': [403, 'The caller may not act in this session.'],
  'auth.forbidden': [403, 'The caller may not do this.'],
  'rate_limit.exceeded': [429, 'Too many requests.'],
  // Entities
  'entity.not_found': [404, 'The resource does not exist.'],
  'entity.not_exists': [404, 'The resource does not exist.'],
  'entity.not_exists_with_id': [404, 'There is no resource with this id.'],
  'entity.relation_foreign_key_not_found': [404, 'A related resource does not exist.'],
  'entity.version_mismatch': [412, 'The record is no longer the one that was read.'],
  'entity.invalid_input': [422, 'The input is not valid.'],
  'entity.value_too_long': [422, 'A value is too long.'],
  'entity.db_constraint_violated': [422, 'The change conflicts with existing data.'],
  'entity.create_failed': [422, 'The resource could not be created.'],
  'entity.unique_integrity_violation': [422, 'The value is already in use.'],
  'user.username_already_in_use': [422, 'This username is already in use.'],
  'user.email_already_in_use': [422, 'This email is already in use.'],
  'user.phone_already_in_use': [422, 'This phone number is already in use.'],
  'user.invalid_phone': [422, 'This is not a phone number.'],
  'user.identity_already_in_use': [422, 'This identity is linked to another user.'],
  'user.identity_not_exist': [404, 'The user has no such identity.'],
  'user.suspended': [422, 'This user is suspended.'],
  'user.invalid_role_type': [422, 'A machine-to-machine role cannot be assigned to a user.'],
  'user.role_exists': [422, 'The role is already assigned to this user.'],
  'user.personal_access_token_name_exists': [422, 'The user has a personal access token with this name.'],
  'user.password_and_digest': [400, 'A password and a password digest cannot be set together.'],
  'user.password_algorithm_required': [400, 'A password digest needs its algorithm.'],
  'user.cannot_delete_self': [400, 'A user cannot delete itself.'],
  'role.name_in_use': [422, 'This role name is already in use.'],
  'role.scope_exists': [422, 'The scope is already on this role.'],
  'role.user_exists': [422, 'The user already has this role.'],
  'role.application_exists': [422, 'The application already has this role.'],
  'role.internal_role_violation': [403, 'Role names that start with "#internal:" are reserved.'],
  'role.management_api_scopes_not_assignable_to_user_role': [
    400,
    'Management API scopes can only stand on machine-to-machine roles.',
  ],
  'role.console_role_not_changeable': [422, 'A role of the console keeps what it is.'],
  'console.last_owner': [422, 'The last owner of the console stays.'],
  'console.signed_out': [401, 'Nobody is signed in to the console here.'],
  'console.cross_site': [403, 'Only the console itself may send this.'],
  'console.step_up_required': [401, 'This needs a fresh sign-in.'],
  'console.gateway_unavailable': [502, 'The gateway does not answer as it should.'],
  'console.invitation_not_valid': [404, 'The link is unknown, was used, or has expired.'],
  'resource.resource_identifier_in_use': [422, 'This resource indicator is already in use.'],
  'resource.cannot_modify_management_api': [400, 'The Management API resource cannot be changed.'],
  'resource.cannot_delete_management_api': [400, 'The Management API resource cannot be deleted.'],
  'scope.name_exists': [422, 'This scope name is already in use on this resource.'],
  'scope.name_with_space': [400, 'A scope name cannot contain white space.'],
  'application.invalid_type': [422, 'This application type cannot do that.'],
  'application.invalid_role_type': [422, 'A user role cannot be assigned to an application.'],
  'application.secret_name_exists': [422, 'A secret with this name already exists.'],
  'application.console_not_changeable': [422, 'The application of the console cannot be changed.'],
  'application.device_flow_native_only': [422, 'Only a native application can use the device flow.'],
  'application.device_flow_not_changeable': [422, 'Whether an application uses the device flow never changes.'],
  'application.algorithm_not_of_profile': [422, 'The security profile of the application has no such algorithm.'],
  'application.third_party_application_cannot_enable_token_exchange': [
    422,
    'A third-party application cannot use token exchange.',
  ],
  'application.third_party_application_only': [422, 'Only a third-party application asks people for consent.'],
  'application.user_consent_scopes_not_found': [422, 'There is no such scope to ask people for.'],
  'application.consent_management_api_scopes_not_allowed': [422, 'Nobody is asked for the Management API.'],
  'organization.role_names_not_found': [422, 'There is no organization role with this name.'],
  'organization.require_membership': [422, 'Only a member of the organization can have roles there.'],
  'hook.missing_events': [400, 'A hook needs at least one event.'],
  'hook.target_not_allowed': [422, 'This webhook target is not allowed.'],
  'hook.relay_unavailable': [503, 'No relay is running.'],
  'hook.event_not_kept': [422, 'The event of this delivery is no longer kept.'],
  'events.cursor_expired': [410, 'This cursor no longer leads to the next event.'],
  'hook.endpoint_responded_with_error': [422, 'The endpoint answered with an error.'],
  'hook.send_test_payload_failed': [422, 'The endpoint could not be reached.'],
  'oidc.key_not_found': [404, 'There is no signing key with this id.'],
  'oidc.key_required': [422, 'The last signing key cannot be deleted.'],
  'oidc.only_previous_key_can_be_deleted': [422, 'Only a previous signing key can be deleted.'],
  'oidc.session_not_found': [404, 'The user has no such session.'],
  'oidc.invalid_grant': [404, 'The user has no such grant.'],
  'jwt_customizer.denied': [403, 'The script denied access.'],
  'jwt_customizer.general': [422, 'The custom claims script does not work.'],
  'jwt_customizer.unavailable': [503, 'The script could not be run now.'],
  'impersonation.denied': [403, 'The impersonation policy refused this.'],
  'impersonation.not_allowed': [403, 'Nobody may do this while acting for somebody else.'],
  'impersonation.policy_unavailable': [503, 'The impersonation policy could not be evaluated.'],
  'impersonation.actor_token_invalid': [400, 'The actor token is not a valid access token of a user with openid.'],
  'impersonation.too_many_requests': [429, 'The person was asked too often within an hour.'],
  'impersonation.request_not_approved': [409, 'The request is not approved, or was used already.'],
  'impersonation.request_not_pending': [409, 'The request was decided already, or has expired.'],
  'impersonation.number_mismatch': [422, 'The number is not the one of the request.'],
  // Passwords and new people
  'password.rejected': [422, 'This password is not good enough.'],
  'password.expired': [422, 'This password has expired.'],
  'user.same_password': [422, 'The new password is the old one.'],
  'sign_in_experiences.password_expiration_not_enabled': [400, 'Passwords do not expire here.'],
  'session.email_blocklist.email_not_allowed': [422, 'This email address is not allowed.'],
  'session.email_blocklist.email_subaddressing_not_allowed': [422, 'An email address with a plus sign is not allowed.'],
  'one_time_token.token_not_found': [404, 'There is no such one-time token.'],
  'one_time_token.email_mismatch': [400, 'The one-time token is for another email address.'],
  'one_time_token.token_expired': [400, 'The one-time token has expired.'],
  'one_time_token.token_consumed': [400, 'The one-time token was used already.'],
  'one_time_token.token_revoked': [400, 'The one-time token was revoked.'],
  'one_time_token.interaction_event_mismatch': [400, 'The one-time token is for something else.'],
  'one_time_token.cannot_reactivate_token': [400, 'A one-time token cannot be made good again.'],
  // Factors
  'user.totp_already_in_use': [422, 'The user has an authenticator app already.'],
  'user.totp_secret_invalid': [422, 'This is not a secret for an authenticator app.'],
  'user.backup_code_already_in_use': [422, 'The user has backup codes already.'],
  'user.passkey_already_in_use': [409, 'This passkey is registered already.'],
  // Messages
  'connector.not_found': [501, 'No connector sends messages on this channel.'],
  'connector.invalid_config': [400, 'The configuration of the connector is not valid.'],
  'connector.target_not_allowed': [422, 'The connector may not lead there.'],
  'connector.authorization_failed': [400, 'The answer of the identity provider proves nothing.'],
  'connector.provider_unavailable': [502, 'The identity provider cannot be reached.'],
  'connector.should_specify_target': [400, 'A connector of this kind needs a target.'],
  'connector.can_not_modify_target': [400, 'The target of a connector stays as it is.'],
  'connector.has_identities': [422, 'People are known by this connector, so it cannot lead elsewhere.'],
  'connector.multiple_target_with_same_platform': [422, 'Another connector has this target.'],
  'single_sign_on.duplicate_connector_name': [409, 'Another enterprise connector has this name.'],
  'single_sign_on.duplicated_domains': [422, 'A domain belongs to one enterprise connector.'],
  'single_sign_on.forbidden_domains': [422, 'Addresses of this domain are anybody’s.'],
  'connector.send_failed': [422, 'The message could not be sent.'],
  'request.message_rate_limited': [429, 'Too many messages were asked for.'],
  // The settings of signing in
  'sign_in_experiences.backup_code_cannot_be_enabled_alone': [400, 'Backup codes cannot be the only factor.'],
  'sign_in_experiences.duplicated_mfa_factors': [400, 'A factor is named twice.'],
  'sign_in_experiences.at_least_one_authentication_factor': [400, 'At least one way to prove who it is must be on.'],
  'sign_in_experiences.username_requires_password': [400, 'A user name needs a password.'],
  'sign_in_experiences.passwordless_requires_verify': [400, 'Addresses of new accounts must be verified.'],
  'sign_in_experiences.miss_sign_up_identifier_in_sign_in': [400, 'Whoever signs up with it must be able to sign in.'],
  'sign_in_experiences.password_sign_in_must_be_enabled': [400, 'Signing in with a password must be on.'],
  'sign_in_experiences.code_sign_in_must_be_enabled': [400, 'Signing in with a code must be on.'],
  'sign_in_experiences.invalid_custom_email_blocklist_format': [400, 'This is no pattern of e-mail addresses.'],
  'sign_in_experiences.sign_in_pages_not_same_site': [422, 'These pages are not on the site of the issuer.'],
  'sign_in_experiences.custom_css_not_allowed': [422, 'The stylesheet has something that is not allowed.'],
  'sign_in_experiences.asset_not_found': [422, 'There is no such picture.'],
  'asset.type_not_supported': [422, 'This is no picture that pages can show.'],
  'asset.too_large': [413, 'The picture is too large.'],
  // Signing in by pages of one's own
  'session.not_found': [404, 'There is no sign-in under way.'],
  'session.origin_not_allowed': [403, 'Pages of this origin may not sign people in.'],
  'session.invalid_interaction_type': [400, 'The sign-in is for something else.'],
  'session.not_supported_for_forgot_password': [400, 'This is not possible while a password is reset.'],
  'session.identifier_not_found': [404, 'Nobody has been identified yet.'],
  'session.verification_session_not_found': [404, 'There is no such verification.'],
  'session.verification_failed': [400, 'The verification was not completed, or is for something else.'],
  'session.verification_blocked_too_many_attempts': [400, 'There were too many attempts.'],
  'session.identity_conflict': [409, 'Somebody else was identified before.'],
  'session.captcha_required': [422, 'A captcha has to be solved first.'],
  'session.captcha_failed': [422, 'The captcha was not solved.'],
  'session.terms_of_use_required': [422, 'The terms of use have to be agreed to first.'],
  'session.sso_enabled': [422, 'People with this email address sign in at their organization.'],
  'session.connector_session_not_found': [404, 'No answer of this connector is waited for.'],
  'session.connector_refused': [422, 'The identity provider said no.'],
  'session.connector_answer_invalid': [400, 'The answer of the identity provider proves nothing.'],
  'session.connector_unavailable': [502, 'The identity provider cannot be reached, or is not set up right.'],
  'user.sso_identity_not_exist': [404, 'The user has no such identity.'],
  'session.denied': [403, 'The rules refuse this sign-in.'],
  'session.mfa.require_mfa_verification': [403, 'A second factor is needed.'],
  'session.mfa.mfa_factor_not_enabled': [400, 'This factor is not enabled.'],
  'session.mfa.invalid_totp_code': [400, 'The code of the authenticator app is not right.'],
  'session.mfa.invalid_backup_code': [400, 'The backup code is not right.'],
  'session.mfa.webauthn_verification_failed': [400, 'The passkey was not accepted.'],
  'session.mfa.backup_code_required': [422, 'Backup codes have to be kept first.'],
  'session.mfa.backup_code_can_not_be_alone': [422, 'Backup codes only stand beside another factor.'],
  'session.mfa.mfa_policy_not_user_controlled': [422, 'A second factor is not optional here.'],
  'user.user_not_exist': [404, 'There is no such user.'],
  'user.sign_in_method_not_enabled': [422, 'This way of signing in is not enabled.'],
  'user.missing_profile': [422, 'Something is missing in the profile.'],
  'user.missing_mfa': [422, 'A second factor has to be added.'],
  'user.passkey_preferred': [422, 'A passkey is offered; it may be put off.'],
  'user.new_password_required_in_profile': [422, 'A new password has to be set first.'],
  'user.username_exists_in_profile': [422, 'The user has a username already.'],
  'user.email_exists_in_profile': [422, 'The user has an email address already.'],
  'user.phone_exists_in_profile': [422, 'The user has a phone number already.'],
  'user.password_exists_in_profile': [422, 'The user has a password already.'],
  'verification_code.not_found': [400, 'No code was sent, or it was used already.'],
  'verification_code.code_mismatch': [400, 'The code is not right.'],
  'verification_code.email_mismatch': [400, 'The code was sent to another email address.'],
  'verification_code.phone_mismatch': [400, 'The code was sent to another phone number.'],
  'verification_code.expired': [400, 'The code has expired.'],
  'verification_code.exceed_max_try': [400, 'The code was tried too often.'],
  // People about their own accounts
  'verification_record.permission_denied': [401, 'The person has to prove first, again, who they are.'],
  'verification_record.not_found': [404, 'There is no such verification, or it was not completed.'],
  'account_center.not_enabled': [403, 'People do not look after their accounts here.'],
  'account_center.field_not_enabled': [403, 'This field is not shown here.'],
  'account_center.field_not_editable': [403, 'This field cannot be changed here.'],
  'user.last_sign_in_method_required': [422, 'It is the last way in which this user can sign in.'],
  // Everywhere
  'server.error': [500, 'Something went wrong on our side.'],
  'server.unavailable': [503, 'The service is temporarily unavailable.'],
} as const satisfies ProblemTable

export type ProblemCode = keyof typeof problems

export const problem = problemsOf(problems)

/** Too much of one kind of work waits for its turn. */
export const overloaded = () => problem('server.unavailable', { headers: { 'Retry-After': '5' } })

/**
 * The error codes of RFC 6749 §4.1.2.1 and §5.2, RFC 7009, RFC 8628 §3.5, RFC 8693, RFC 8707, RFC 9126, RFC 9449,
 * OpenID Connect Core §3.1.2.6 and their HTTP statuses.
 */
export const oauthErrors = {
  invalid_request: 400,
  invalid_client: 401,
  invalid_grant: 400,
  unauthorized_client: 400,
  unsupported_grant_type: 400,
  unsupported_token_type: 400,
  invalid_scope: 400,
  invalid_target: 400,
  invalid_dpop_proof: 400,
  use_dpop_nonce: 400,
  invalid_token: 401,
  insufficient_scope: 403,
  access_denied: 400,
  authorization_pending: 400,
  slow_down: 400,
  expired_token: 400,
  unsupported_response_type: 400,
  request_not_supported: 400,
  request_uri_not_supported: 400,
  registration_not_supported: 400,
  invalid_request_uri: 400,
  server_error: 500,
  temporarily_unavailable: 503,
} as const satisfies Record<string, number>

export type OAuthErrorCode = keyof typeof oauthErrors

/** An error of the OAuth endpoints: `error`, `error_description`, and for token exchange a stable `reason`. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  readonly error: OAuthErrorCode
  readonly status: number
  readonly reason: string | undefined
  readonly headers: Record<string, string>
  /** What the answer says besides. */
  readonly members: Readonly<Record<string, unknown>>

  constructor(
    error: OAuthErrorCode,
    description: string,
    options: {
      reason?: string
      status?: number
      headers?: Record<string, string>
      members?: Readonly<Record<string, unknown>>
      cause?: unknown
    } = {},
  ) {
    super(description, { cause: options.cause })
    this.error = error
    this.status = options.status ?? oauthErrors[error]
    this.reason = options.reason
    this.headers = options.headers ?? {}
    this.members = options.members ?? {}
  }
}
