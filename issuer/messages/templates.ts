import type { TextKey, TextNames } from './texts/translation.ts'

/**
 * The kinds of messages: what each says, in which order, and how it is treated. A kind is a row here and its texts in
 * every catalogue.
 */
interface Template<Parts extends readonly TextKey[] = readonly TextKey[]> {
  /** The paragraphs of a mail. An SMS is the first, and what `brief` names. */
  parts: Parts
  /** What an SMS says after the first paragraph. */
  brief: readonly TextKey[]
  /** How providers know it: by its own name, or as one of the notices. */
  usage: 'own' | 'Notice'
  /** Somebody asked for it, so it counts against limits; what an owner must know does not. */
  limited: boolean
  /** How long it may wait for its provider, in seconds. */
  ttl: number
}

/** As long as the code itself. */
export const codeSeconds = 600
const day = 86_400

const code = <const Key extends TextKey>(key: Key): Template<readonly [Key, 'codeLife', 'ignoreCode']> => ({
  parts: [key, 'codeLife', 'ignoreCode'],
  brief: ['codeLife'],
  usage: 'own',
  limited: true,
  ttl: codeSeconds,
})

const letter = <const Key extends TextKey>(key: Key): Template<readonly [Key]> => ({
  parts: [key],
  brief: [],
  usage: 'own',
  limited: true,
  ttl: day,
})

const notice = <const Key extends TextKey>(key: Key): Template<readonly [Key, 'noticeHelp']> => ({
  parts: [key, 'noticeHelp'],
  brief: [],
  usage: 'Notice',
  limited: false,
  ttl: 3 * day,
})

export const templates = {
  SignIn: code('SignIn'),
  Register: code('Register'),
  ForgotPassword: code('ForgotPassword'),
  BindNewIdentifier: code('BindNewIdentifier'),
  MfaVerification: code('MfaVerification'),
  BindMfa: code('BindMfa'),
  UserPermissionValidation: code('UserPermissionValidation'),
  Generic: code('Generic'),
  OrganizationInvitation: letter('OrganizationInvitation'),
  /** To the owner of an address with which somebody wants to register. */
  AlreadyRegistered: letter('AlreadyRegistered'),
  PasswordChanged: notice('PasswordChanged'),
  FactorAdded: notice('FactorAdded'),
  FactorRemoved: notice('FactorRemoved'),
  IdentityLinked: notice('IdentityLinked'),
  IdentityUnlinked: notice('IdentityUnlinked'),
  NewDevice: notice('NewDevice'),
  BackupCodeUsed: notice('BackupCodeUsed'),
  /** To the old address. */
  AddressChanged: notice('AddressChanged'),
  /** It can be decided for ten minutes. */
  ImpersonationRequested: {
    ...{ parts: ['ImpersonationRequested', 'requestHelp'], brief: ['requestHelp'] },
    ...{ usage: 'Notice', limited: false, ttl: 9 * 60 },
  },
  ImpersonationStarted: notice('ImpersonationStarted'),
  ImpersonationEnded: notice('ImpersonationEnded'),
} as const satisfies { [Key in TextKey]?: Template }

export type MessageType = keyof typeof templates

/** The variables that the caller gives: those of the first paragraph and of the subject. The others are supplied. */
export type MessageVariables<Type extends MessageType> = Readonly<
  Record<TextNames<(typeof templates)[Type]['parts'][0] | `${Type}Subject`>, string>
>
