import { z } from 'zod'
import { type Query, statement } from '../../platform/database/database.ts'
import { mfaPolicies, type SignInInput } from '../../policies/sign-in.ts'
import { readSetting, type Setting } from '../base/settings-store.ts'
import { readIdentifier } from './identifier.ts'
import { findPerson } from './person-store.ts'

/** What the rules would be told of a person and a client, for whoever asks why; nobody signs in by it. */
export interface ExplainFacts {
  person: {
    id: string
    username: string | null
    isSuspended: boolean
    /** Names. */
    roles: string[]
    /** Ids. */
    organizations: string[]
    /** Ids of those of them that have `isMfaRequired`. */
    mfaOrganizations: string[]
  }
  client: { id: string; name: string; type: string; isThirdParty: boolean }
  mfa: Omit<SignInInput['settings']['mfa'], 'organizations'>
}

const selectPerson = statement(
  'explain-person',
  `SELECT u.id, u.username, u.is_suspended AS "isSuspended",
     ARRAY(SELECT r.name FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = u.id ORDER BY 1) AS roles,
     ARRAY(SELECT m.organization_id FROM organization_users m WHERE m.user_id = u.id ORDER BY 1) AS organizations,
     ARRAY(SELECT o.id FROM organization_users m JOIN organizations o ON o.id = m.organization_id
       WHERE m.user_id = u.id AND o.is_mfa_required ORDER BY 1) AS "mfaOrganizations"
   FROM users u WHERE u.id = $1`,
)

const selectClient = statement(
  'explain-client',
  `SELECT id, name, type, is_third_party AS "isThirdParty" FROM applications WHERE id = $1`,
)

/** Kinds of proof by the names of the settings. */
const factorKinds: Readonly<Record<string, string>> = {
  WebAuthn: 'passkey',
  Totp: 'totp',
  PhoneVerificationCode: 'phone_code',
  EmailVerificationCode: 'email_code',
  BackupCode: 'backup_code',
}

/** What rules are told of the settings of signing in; the rest of them is passed over. */
const ruleSettings = {
  name: 'sign-in-experience',
  schema: z.looseObject({
    mfa: z
      .looseObject({
        factors: z.array(z.string()).default([]),
        policy: z.enum(mfaPolicies).default('PromptAtSignInAndSignUp'),
        organizationRequiredMfaPolicy: z.enum(['NoPrompt', 'Mandatory']).default('NoPrompt'),
      })
      .prefault({}),
  }),
} satisfies Setting<z.ZodType>

/** `user`: an id, or what the person would type to sign in. */
export const findExplainFacts = async (
  query: Query,
  { user, clientId }: { user: string; clientId: string },
): Promise<{ [Member in keyof ExplainFacts]: ExplainFacts[Member] | undefined } & Pick<ExplainFacts, 'mfa'>> => {
  const byId = async (id: string) => (await query<ExplainFacts['person']>(selectPerson, [id]))[0]
  const byIdentifier = async () => {
    const identifier = readIdentifier(user)
    const found = identifier && (await findPerson(query, identifier, undefined))
    return found && byId(found.id)
  }
  const { mfa } = await readSetting(query, ruleSettings)
  return {
    person: (await byId(user)) ?? (await byIdentifier()),
    client: (await query<ExplainFacts['client']>(selectClient, [clientId]))[0],
    mfa: {
      policy: mfa.policy,
      factors: mfa.factors.map((name) => factorKinds[name] ?? name),
      organizationPolicy: mfa.organizationRequiredMfaPolicy,
    },
  }
}
