import { z } from 'zod'
import type { Setting } from '../../base/settings-store.ts'
import { pictureLink, safeLink, webLink } from './links.ts'

/**
 * The settings of signing in, as Logto's `/api/sign-in-exp` has them. Every member has its default, and so have the
 * members of members, but for `signIn.methods` and the like, which are set as a whole.
 */

const flag = (value: boolean) => z.boolean().default(value)
const cleared = (text: string | null) => (text === '' ? null : text)
const optional = <Schema extends z.ZodType<string>>(schema: Schema) =>
  z
    .union([schema, z.literal(''), z.null()])
    .default(null)
    .transform(cleared)
const texts = (length: number, count: number) => z.array(z.string().min(1).max(length)).max(count)

export const identifiers = ['username', 'email', 'phone'] as const
const identifier = z.enum(identifiers)
export type SignInIdentifier = z.infer<typeof identifier>

export const mfaFactors = ['Totp', 'WebAuthn', 'BackupCode', 'EmailVerificationCode', 'PhoneVerificationCode'] as const
export type MfaFactor = (typeof mfaFactors)[number]

const mfaPolicies = ['Mandatory', 'PromptOnlyAtSignIn', 'PromptAtSignInAndSignUp', 'NoPrompt'] as const
export type MfaPolicy = (typeof mfaPolicies)[number]
/** Logto's older name, and two that only differ with adaptive MFA. */
const mfaPolicyAliases: Readonly<Record<string, MfaPolicy>> = {
  UserControlled: 'PromptAtSignInAndSignUp',
  PromptAtSignInAndSignUpMandatory: 'Mandatory',
  PromptOnlyAtSignInMandatory: 'Mandatory',
}
const mfaPolicy = z
  .enum([...mfaPolicies, 'UserControlled', 'PromptAtSignInAndSignUpMandatory', 'PromptOnlyAtSignInMandatory'])
  .transform((name): MfaPolicy => mfaPolicyAliases[name] ?? (name as MfaPolicy))

const signInMethod = z.object({
  identifier,
  password: z.boolean(),
  verificationCode: z.boolean(),
  isPasswordPrimary: z.boolean(),
})

const byPassword = (name: SignInIdentifier) => ({
  identifier: name,
  password: true,
  verificationCode: false,
  isPasswordPrimary: true,
})

/** `#rgb` or `#rrggbb`. */
export const hexColor = z.string().regex(/^#([\da-f]{3}|[\da-f]{6})$/i, 'must be a colour such as #3b4fd6')

export const defaultColors = { primaryColor: '#3b4fd6', darkPrimaryColor: '#95a3ff' } as const

const color = z
  .object({
    primaryColor: hexColor.default(defaultColors.primaryColor),
    isDarkModeEnabled: flag(true),
    darkPrimaryColor: hexColor.default(defaultColors.darkPrimaryColor),
  })
  .prefault({})

/** What an application may have of its own too. "" clears a member. */
export const branding = z
  .object({
    logoUrl: pictureLink.or(z.literal('')),
    darkLogoUrl: pictureLink.or(z.literal('')),
    favicon: pictureLink.or(z.literal('')),
    darkFavicon: pictureLink.or(z.literal('')),
  })
  .partial()
  .transform(
    (pictures): Partial<Record<keyof typeof pictures, string>> =>
      Object.fromEntries(Object.entries(pictures).filter(([, link]) => link !== '')),
  )

/** Characters. Of the whole sheet, comments included. */
export const maxCustomCss = 16_384
/** A name on a page. */
export const displayName = z.string().min(1).max(60)

/** JSON of bounded size that does nothing here: it is kept as it was sent. */
const kept = <Default extends Record<string, unknown>>(value: Default) =>
  z
    .record(z.string().max(128), z.unknown())
    .refine((sent) => JSON.stringify(sent).length <= 16_384, 'must be at most 16384 characters of JSON')
    .default(value)

const members = z.object({
  /** Whether people may sign in, sign up, or both. */
  signInMode: z.enum(['SignIn', 'Register', 'SignInAndRegister']).default('SignInAndRegister'),
  /** By what people may be found, and what proves it. */
  signIn: z
    .object({ methods: z.array(signInMethod).max(identifiers.length) })
    .default({ methods: identifiers.map(byPassword) }),
  /** What a new account needs. No identifier: accounts come from connectors only. */
  signUp: z
    .object({
      identifiers: z.array(identifier).max(identifiers.length),
      password: z.boolean(),
      verify: z.boolean(),
      secondaryIdentifiers: z
        .array(z.object({ identifier: z.enum([...identifiers, 'emailOrPhone']), verify: z.boolean().optional() }))
        .max(identifiers.length)
        .optional(),
    })
    .default({ identifiers: ['username'], password: true, verify: false }),
  mfa: z
    .object({
      factors: z.array(z.enum(mfaFactors)).max(mfaFactors.length),
      policy: mfaPolicy,
      /** Of organizations that require MFA. */
      organizationRequiredMfaPolicy: z.enum(['NoPrompt', 'Mandatory']).optional(),
    })
    .default({ factors: [], policy: 'PromptAtSignInAndSignUp' }),
  passkeySignIn: z
    .object({ enabled: flag(false), showPasskeyButton: flag(true), allowAutofill: flag(true) })
    .prefault({}),
  passwordPolicy: z
    .object({
      /** `nist`: at least 15, or 8 where a second factor is mandatory (SP 800-63B-4). Not Logto's. */
      preset: z.enum(['default', 'nist']).default('default'),
      /** In code points. */
      length: z
        .object({ min: z.int().min(1).max(256).default(8), max: z.int().min(8).max(256).default(256) })
        .prefault({}),
      characterTypes: z.object({ min: z.int().min(1).max(4).default(1) }).prefault({}),
      rejects: z
        .object({
          pwned: flag(true),
          repetitionAndSequence: flag(true),
          userInfo: flag(true),
          words: texts(128, 1_000).default([]),
        })
        .prefault({}),
    })
    .prefault({}),
  passwordExpiration: z
    .object({
      enabled: flag(false),
      validPeriodDays: z.int().min(1).max(3_650).optional(),
      /** Milliseconds since the epoch. */
      enabledAt: z.int().min(0).optional(),
    })
    .prefault({}),
  /** When failures lock an account: so many within so many minutes, and for as long. */
  sentinelPolicy: z
    .object({
      maxAttempts: z.int().min(1).max(1_000).default(10),
      lockoutDuration: z.int().min(1).max(44_640).default(15),
    })
    .prefault({}),
  /** Codes by mail and text message: how long they are good, in seconds, and for how many tries. */
  verificationCodePolicy: z
    .object({
      expirationDuration: z.int().min(60).max(3_600).default(600),
      maxRetryAttempts: z.int().min(1).max(10).default(5),
    })
    .prefault({}),
  captchaPolicy: z.object({ enabled: flag(false) }).prefault({}),
  emailBlocklistPolicy: z
    .object({
      blockDisposableAddresses: flag(false),
      blockSubaddressing: flag(false),
      customAllowlist: texts(256, 1_000).default([]),
      customBlocklist: texts(256, 1_000).default([]),
    })
    .prefault({}),
  /** null: all that can be. [] none. */
  forgotPasswordMethods: z
    .array(z.enum(['EmailVerificationCode', 'PhoneVerificationCode']))
    .max(2)
    .nullable()
    .default(null),
  usernamePolicy: kept({}),
  agreeToTermsPolicy: z.enum(['Automatic', 'ManualRegistrationOnly', 'Manual']).default('Automatic'),
  termsOfUseUrl: optional(webLink),
  privacyPolicyUrl: optional(webLink),
  socialSignIn: z.object({ automaticAccountLinking: flag(false), skipRequiredIdentifiers: flag(false) }).prefault({}),
  socialSignInConnectorTargets: texts(128, 100).default([]),
  singleSignOnEnabled: flag(false),
  color,
  branding: branding.default({}),
  hideLogtoBranding: flag(false),
  customCss: z.string().max(maxCustomCss).nullable().default(null).transform(cleared),
  /** `<page>.<part>`, or for one language `<page>.<part>.<language>`: a plain text. */
  customContent: z
    .record(z.string().max(128), z.string().max(1_000))
    .refine((sent) => Object.keys(sent).length <= 200, 'must have at most 200 members')
    .default({}),
  languageInfo: z
    .object({ autoDetect: z.boolean(), fallbackLanguage: z.string().max(16) })
    .default({ autoDetect: true, fallbackLanguage: 'en' }),
  unknownSessionRedirectUrl: optional(safeLink),
  supportEmail: optional(z.email().max(256)),
  supportWebsiteUrl: optional(webLink),
  /** On the pages instead of ours. Not Logto's. */
  displayName: optional(displayName),
  /** The address of pages of one's own instead of ours (they use the Experience API). Not Logto's. */
  signInPages: optional(safeLink),
  /** Whether people get a message when somebody begins or ceases to act as them. Not Logto's. */
  notifyImpersonation: flag(true),
  /** Whether impersonations end with what whoever acts had signed in to. Not Logto's. */
  impersonationEndsWithActor: flag(true),
  // These do nothing here.
  adaptiveMfa: kept({}),
  signUpProfileFields: z
    .array(z.object({ name: z.string().max(128) }))
    .max(100)
    .nullable()
    .default(null),
  customUiAssets: kept({}).nullable().default(null),
  customUiCsp: kept({}),
})

/** Whole, defaults filled in. */
export type SignInExperience = z.output<typeof members>

/** Everybody needs a second factor. Settings that enable none ask nobody for one. */
export const isMfaMandatory = ({ policy, factors }: SignInExperience['mfa']): boolean =>
  policy === 'Mandatory' && factors.length > 0

/** The record as it is stored: one row of the settings. */
export const signInExperience = {
  name: 'sign-in-experience',
  schema: members,
} satisfies Setting<z.ZodType>

/** Some members of it. Those that were not sent are filled in too: whoever merges picks those that were. */
export const signInExperiencePatch = members.partial()

/** What an application sets of its own. `null` and members that are not there: as the issuer has it. */
export const applicationExperience = z.object({
  color: z
    .object({ primaryColor: hexColor, isDarkModeEnabled: z.boolean(), darkPrimaryColor: hexColor })
    .partial()
    .default({}),
  branding: branding.default({}),
  customCss: z.string().max(maxCustomCss).nullable().default(null).transform(cleared),
  termsOfUseUrl: optional(webLink),
  privacyPolicyUrl: optional(webLink),
  displayName: optional(displayName),
  signInPages: optional(safeLink),
})
export type ApplicationExperience = z.output<typeof applicationExperience>
