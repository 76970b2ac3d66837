import type { Field } from '../../components/field.ts'
import { identifiers, proofs } from './sign-in-methods.ts'

type Groups = Readonly<Record<string, readonly Field[]>>

const flag = (path: string, label: string, hint?: string): Field => ({ path, label, kind: 'flag', hint })
const number = (path: string, label: string, hint?: string): Field => ({ path, label, kind: 'number', hint })
const proof = (name: keyof typeof identifiers, options: Record<string, string>): Field => ({
  ...{ path: `methods.${name}`, label: identifiers[name], kind: 'choice', options },
})

/** Who gets in, and with what. `targets`: of social connectors, by their names. */
export const signInGroups = (targets: Readonly<Record<string, string>>): Groups => ({
  'Signing in': [
    {
      ...{ path: 'signInMode', label: 'People may', kind: 'choice' },
      options: { SignInAndRegister: 'Sign in and register', SignIn: 'Sign in', Register: 'Register' },
    },
    proof('username', { off: proofs.off, password: proofs.password }),
    proof('email', proofs),
    proof('phone', proofs),
    {
      ...{ path: 'forgotPasswordMethods', label: 'Who forgot the password gets a code by', kind: 'several' },
      options: { EmailVerificationCode: 'E-mail', PhoneVerificationCode: 'Text message' },
    },
  ],
  Registration: [
    {
      ...{ path: 'signUp.identifiers', label: 'A new account needs', kind: 'several', options: identifiers },
      hint: 'Nothing chosen: accounts come from identity providers alone.',
    },
    flag('signUp.password', 'And a password'),
    flag('signUp.verify', 'Addresses are proved by a code', 'Must be on with an e-mail address or a telephone number.'),
    {
      ...{ path: 'agreeToTermsPolicy', label: 'Terms of use', kind: 'choice' },
      options: {
        Automatic: 'Whoever goes on agrees',
        ManualRegistrationOnly: 'A box to tick when registering',
        Manual: 'A box to tick, also when signing in',
      },
    },
    flag('emailBlocklistPolicy.blockDisposableAddresses', 'No disposable e-mail addresses'),
    flag('emailBlocklistPolicy.blockSubaddressing', 'No addresses with a plus, such as ada+shop@example.com'),
    {
      ...{ path: 'emailBlocklistPolicy.customBlocklist', label: 'E-mail addresses that may not', kind: 'list' },
      ...{ isCode: true, placeholder: '@example.com' },
    },
  ],
  'Identity providers': [
    ...(Object.keys(targets).length === 0
      ? []
      : [
          {
            ...{ path: 'socialSignInConnectorTargets', label: 'Offered as buttons', kind: 'several' as const },
            options: targets,
          },
        ]),
    flag('singleSignOnEnabled', 'Single sign-on', 'Whoever types an address of a company goes to its provider.'),
    flag('socialSignIn.automaticAccountLinking', 'Link accounts by verified address', 'Without asking first.'),
    flag('socialSignIn.skipRequiredIdentifiers', 'New accounts of providers need no more than the provider says'),
  ],
  Language: [
    flag('languageInfo.autoDetect', 'Each in the language of the browser'),
    { path: 'languageInfo.fallbackLanguage', label: 'Otherwise', kind: 'choice', options: languages() },
  ],
  'Pages of your own': [
    {
      path: 'signInPages',
      label: 'Address of your sign-in pages',
      isCode: true,
      placeholder: 'https://login.example.com',
    },
    {
      ...{ path: 'unknownSessionRedirectUrl', label: 'Where lost people go', isCode: true },
      hint: 'Whoever opens a page of signing in without having begun at an application.',
    },
  ],
})

function languages(): Record<string, string> {
  return { en: 'English', de: 'Deutsch', fr: 'Français', es: 'Español', ja: '日本語' }
}

/** What keeps others out. */
export const securityGroups: Groups = {
  Passwords: [
    {
      ...{ path: 'passwordPolicy.preset', label: 'Rules', kind: 'choice' },
      options: { default: 'Those below', nist: 'NIST SP 800-63B-4: at least 15, or 8 with a second factor' },
    },
    number('passwordPolicy.length.min', 'Shortest', 'In characters.'),
    number('passwordPolicy.length.max', 'Longest'),
    number('passwordPolicy.characterTypes.min', 'Kinds of characters', 'Small, capital, digits, others: 1 to 4.'),
    flag('passwordPolicy.rejects.pwned', 'No password that has leaked'),
    flag('passwordPolicy.rejects.repetitionAndSequence', 'No repetitions and sequences, such as aaaa or 1234'),
    flag('passwordPolicy.rejects.userInfo', 'Nothing of the account itself'),
    { path: 'passwordPolicy.rejects.words', label: 'And none of these words', kind: 'list' },
    flag('passwordExpiration.enabled', 'Passwords expire'),
    number('passwordExpiration.validPeriodDays', 'After so many days'),
  ],
  'Second factors': [
    {
      ...{ path: 'mfa.factors', label: 'People may use', kind: 'several' },
      options: {
        Totp: 'Authenticator app',
        WebAuthn: 'Passkey',
        BackupCode: 'Backup codes, beside another one',
        EmailVerificationCode: 'Code by e-mail',
        PhoneVerificationCode: 'Code by text message',
      },
    },
    {
      ...{ path: 'mfa.policy', label: 'Who needs one', kind: 'choice' },
      options: {
        Mandatory: 'Everybody',
        PromptAtSignInAndSignUp: 'Whoever wants: asked when signing in and registering',
        PromptOnlyAtSignIn: 'Whoever wants: asked when signing in',
        NoPrompt: 'Whoever wants: nobody is asked',
      },
    },
  ],
  Passkeys: [
    flag('passkeySignIn.enabled', 'Sign in with a passkey, without a password'),
    flag('passkeySignIn.showPasskeyButton', 'A button for it'),
    flag('passkeySignIn.allowAutofill', 'Offered in the field of the name'),
  ],
  'Guesses and robots': [
    number('sentinelPolicy.maxAttempts', 'Wrong passwords and codes that lock an account'),
    number('sentinelPolicy.lockoutDuration', 'For so many minutes'),
    number('verificationCodePolicy.maxRetryAttempts', 'Guesses at a code that was sent', '1 to 10.'),
    number('verificationCodePolicy.expirationDuration', 'A code is good for so many seconds', '60 to 3600.'),
    flag('captchaPolicy.enabled', 'Captcha', 'Which one is said by CAPTCHA of the configuration.'),
  ],
  Impersonation: [
    flag('notifyImpersonation', 'People hear of it when somebody acts as them'),
    flag('impersonationEndsWithActor', 'It ends when whoever acts signs out'),
  ],
}

const access = { Off: 'Hidden', ReadOnly: 'To read', Edit: 'To change' }
const accountField = (path: string, label: string): Field => ({
  ...{ path: `fields.${path}`, label, kind: 'choice', options: access },
})

/** What people see and change of themselves. */
export const accountGroups: Groups = {
  'Account pages': [
    flag('enabled', 'People look after their accounts themselves', 'At /account, and by the Account API.'),
  ],
  'What they may do': [
    accountField('name', 'Name'),
    accountField('avatar', 'Picture'),
    accountField('profile', 'Profile'),
    accountField('username', 'User name'),
    accountField('email', 'E-mail address'),
    accountField('phone', 'Telephone number'),
    accountField('password', 'Password'),
    accountField('mfa', 'Second factors'),
    accountField('passkey', 'Passkeys'),
    accountField('social', 'Identities of providers'),
    accountField('session', 'Devices and applications'),
    accountField('customData', 'Custom data'),
    accountField('export', 'Download of all that is kept'),
    accountField('deletion', 'Deletion of the account'),
  ],
}

export const sessionGroups: Groups = {
  Sessions: [
    number('ttl', 'Seconds until everybody signs in again', '86400 is a day.'),
    number('idleTtl', 'Seconds without use'),
  ],
}
