import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { type Database, queryOf } from '../../platform/database/database.ts'
import { newId, randomToken } from '../../platform/ids.ts'
import { managementScopes } from '../base/authorization.ts'
import { consoleClientId } from '../base/console-roles.ts'
import type { Cookies } from '../base/cookies.ts'
import { problem } from '../base/errors/problems.ts'
import type { Mutate } from '../base/mutate.ts'
import { parseInput } from '../base/parse-input.ts'
import { readJson } from '../base/request-body.ts'
import type { OperationContext } from '../base/route.ts'
import { patchSetting, readSetting } from '../base/settings-store.ts'
import { assignRoles } from '../directory/roles/assignment-store.ts'
import type { Settings } from '../directory/sign-in-experience/settings.ts'
import { type SignInExperience, signInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import {
  type Factors,
  type NewCredential,
  newUserHandle,
  type RelyingParty,
  registrationCredential,
  registrationOptions,
  verifyRegistration,
} from '../directory/users/factors/index.ts'
import { welcomeUser } from '../directory/users/new-user.ts'
import type { PasswordHasher } from '../directory/users/password.ts'
import type { PasswordDigest } from '../directory/users/password-digests.ts'
import type { PasswordRules } from '../directory/users/password-policy/password-rules.ts'
import { password } from '../directory/users/user.ts'
import { insertUser } from '../directory/users/user-store.ts'
import { authenticationBy } from '../interaction/proofs.ts'
import { prepareSession, type SessionLimits } from '../interaction/sign-in-session.ts'
import type { VisitorOf } from '../interaction/visitor.ts'
import { authorizationCode, insertAuthorization } from '../tokens/authorizations/authorization-store.ts'
import { insertSession } from '../tokens/sessions/session-store.ts'
import { newSignInSid } from '../tokens/sid.ts'
import type { ConsoleCall } from './console-endpoint.ts'
import type { ConsoleCookies } from './cookies.ts'
import { askForPasskey, findInvitation, spendInvitation, takeChallenge } from './invitation-store.ts'
import { roleNameOf } from './role-name.ts'
import type { ConsoleClient, ConsoleSessions } from './sessions.ts'

export interface SetupDependencies {
  database: Pick<Database, 'query'>
  mutate: Mutate
  factors: Pick<Factors, 'bindPasskey' | 'replaceBackupCodes'>
  relyingParty: RelyingParty
  passwords: Pick<PasswordHasher, 'hash'>
  passwordRules: PasswordRules
  settings: Pick<Settings, 'refreshed'>
  sessionLimits(): SessionLimits
  visitorOf: VisitorOf
  /** Of the issuer. */
  issuerCookies: Cookies
  cookies: ConsoleCookies
  client: ConsoleClient
  sessions: ConsoleSessions
  baseUrl: string
  consoleUrl: string
}

const token = z.string().regex(/^[\w-]{43}$/, 'must be the token of a link')
const person = {
  name: z.string().trim().min(1).max(128),
  primaryEmail: z.string().max(128, { abort: true }).pipe(z.email()),
}
const checkBody = z.object({ token })
const passkeyBody = z.object({ token, ...person })
const setupBody = z
  .object({
    token,
    ...person,
    password: password.optional(),
    passkey: registrationCredential.optional(),
  })
  .refine(({ password, passkey }) => password !== undefined || passkey !== undefined, 'needs a passkey or a password')

type Setup = z.output<typeof setupBody>

/** What a member who is made signs in with. */
interface Credentials {
  digest: PasswordDigest | undefined
  passkey: { handle: Buffer; credential: NewCredential } | undefined
}

const notValid = () => problem('console.invitation_not_valid')

/** What the page behind a link calls: who is invited becomes a person with a role of the console, and is signed in. */
export const createSetupCalls = (dependencies: SetupDependencies): Readonly<Record<string, ConsoleCall>> => {
  const { database, mutate, factors, relyingParty, passwords, passwordRules, settings } = dependencies
  const { visitorOf, issuerCookies, cookies, client, sessions, baseUrl, consoleUrl } = dependencies
  const { query } = database

  const check: ConsoleCall = async (request) => {
    const body = parseInput(checkBody, await readJson(request))
    const invitation = await findInvitation(query, body.token)
    if (!invitation) throw notValid()
    const { roleId, expiresAt } = invitation
    return {
      status: 200,
      body: { role: roleNameOf(roleId), expiresAt: Math.floor(expiresAt.getTime() / 1_000), rpId: relyingParty.id },
    }
  }

  const passkey: ConsoleCall = async (request) => {
    const body = parseInput(passkeyBody, await readJson(request))
    const [handle, challenge] = [newUserHandle(), randomToken()]
    if (!(await askForPasskey(query, body.token, { handle: handle.toString('base64url'), challenge }))) throw notValid()
    const owner = { handle, name: body.primaryEmail, displayName: body.name }
    return { status: 200, body: registrationOptions(relyingParty, challenge, owner, []) }
  }

  /** Everything that takes long or may be refused, before anything is spent. */
  const credentialsOf = async ({ token, passkey, password, name, primaryEmail }: Setup): Promise<Credentials> => {
    if (!(await findInvitation(query, token))) throw notValid()
    if (password !== undefined) await passwordRules.require(password, { name, email: primaryEmail })
    return {
      passkey: passkey && (await verifiedPasskey(token, passkey)),
      digest: password === undefined ? undefined : await passwords.hash(password),
    }
  }

  const verifiedPasskey = async (token: string, answer: z.output<typeof registrationCredential>) => {
    const asked = await takeChallenge(query, token)
    const credential = asked && verifyRegistration(answer, { challenge: asked.challenge, relyingParty }).verified
    if (!credential) throw problem('session.mfa.webauthn_verification_failed')
    return { handle: Buffer.from(asked.handle, 'base64url'), credential }
  }

  const setUp: ConsoleCall = async (request, origin) => {
    const body = parseInput(setupBody, await readJson(request))
    const credentials = await credentialsOf(body)
    const [userId, code, verifier] = [newId(12), randomToken(), randomToken()]
    const made = await mutate(contextOf(request, body), async (mutation) => {
      const { trx, record, note } = mutation
      const own = queryOf(trx)
      const invitation = await spendInvitation(own, body.token)
      if (!invitation) throw notValid()
      note({ userId, details: { role: roleNameOf(invitation.roleId) } })
      const row = await insertUser(trx, {
        id: userId,
        name: body.name,
        primary_email: body.primaryEmail,
        ...(credentials.digest && {
          password_digest: credentials.digest.digest,
          password_algorithm: credentials.digest.algorithm,
        }),
      })
      await welcomeUser({ trx, record }, row)
      await assignRoles(trx, 'user', [{ holderId: userId, roleId: invitation.roleId }])
      const { passkey } = credentials
      if (passkey) {
        const { handle: userHandle, credential } = passkey
        const agent = origin.userAgent
        await factors.bindPasskey(trx, { userId, userHandle, credential, ...(agent !== undefined && { agent }) })
      }
      const experience = await readSetting(own, signInExperience)
      if (passkey) await offerPasskeys(trx, experience)
      const visitor = visitorOf(request)
      const { session, setCookie } = prepareSession(issuerCookies, {
        event: 'SignIn',
        userId,
        proofs: [],
        authentication: authenticationBy([{ kind: passkey ? 'passkey' : 'password' }]),
        keep: false,
        limits: dependencies.sessionLimits(),
        visitor,
      })
      await insertSession(own, session)
      const isAuthorized = await insertAuthorization(own, {
        id: newSignInSid(),
        sessionId: session.id,
        userId,
        clientId: consoleClientId,
        scopes: ['openid', ...Object.keys(managementScopes)],
        resources: [`${baseUrl}/api`],
        organizationId: undefined,
        isOffline: false,
        refreshTtl: 86_400,
        code: authorizationCode(code),
        redirectUri: `${consoleUrl}/console/callback`,
        codeChallenge: createHash('sha256').update(verifier).digest('base64url'),
        nonce: undefined,
      })
      if (!isAuthorized) throw new Error('A session that was just made does not count.')
      return {
        setCookie,
        recoveryCodes: needsRecoveryCodes(experience, credentials)
          ? await factors.replaceBackupCodes(trx, userId)
          : undefined,
      }
    })
    if (credentials.passkey) await settings.refreshed()
    const cookie = await sessions.open(await client.redeem(code, verifier, origin))
    return {
      status: 201,
      body: { recoveryCodes: made.recoveryCodes },
      setCookies: [made.setCookie, cookies.setSession(cookie)],
    }
  }

  const contextOf = (request: IncomingMessage, body: Setup): OperationContext => ({
    operationId: 'setUp',
    auditArea: 'Console',
    caller: { subject: consoleClientId, clientId: consoleClientId, scopes: new Set() },
    request: {
      ...visitorOf(request).origin,
      method: 'POST',
      path: '/console/setup',
      matchedRoute: '/console/setup',
      params: {},
      status: 201,
    },
    fields: Object.keys(body).filter((name) => name !== 'token'),
  })

  return { '/console/setup/check': check, '/console/setup/passkey': passkey, '/console/setup': setUp }
}

/** Whoever has a passkey alone could not sign in a second time otherwise. */
const offerPasskeys = async (
  trx: Parameters<typeof patchSetting>[0],
  { passkeySignIn }: SignInExperience,
): Promise<void> => {
  if (passkeySignIn.enabled) return
  await patchSetting(trx, signInExperience, { passkeySignIn: { ...passkeySignIn, enabled: true } })
}

/** They stand in for a second factor, where one is asked for after the password. */
const needsRecoveryCodes = ({ mfa: { factors } }: SignInExperience, { digest, passkey }: Credentials): boolean =>
  digest !== undefined && passkey !== undefined && factors.includes('WebAuthn') && factors.includes('BackupCode')
