/** Why a passkey is refused: a name for the audit, and a sentence for who reads it. */
export const passkeyRefusals = {
  malformed: 'The answer of the browser cannot be read.',
  wrong_type: 'The answer is of the other ceremony.',
  wrong_challenge: 'The answer is to another challenge.',
  wrong_origin: 'The answer was made on a page of another origin.',
  cross_origin: 'The answer was made in a frame on a page of another origin.',
  wrong_relying_party: 'The authenticator answered for another relying party.',
  user_not_present: 'The authenticator did not see the user.',
  user_not_verified: 'The authenticator did not verify the user.',
  backup_flags_contradict: 'The credential is backed up without being eligible for it.',
  backup_eligibility_changed: 'The credential became eligible for backup, or no longer is.',
  unsupported_algorithm: 'The key is for an algorithm that was not offered.',
  unsupported_key: 'The key is not one of its algorithm.',
  wrong_credential: 'The answer is of another credential.',
  wrong_signature: 'The signature is not right.',
  wrong_user: 'The credential is not of this user.',
  counter_not_increased: 'The signature counter did not increase: the credential may have been copied.',
} as const

export type PasskeyRefusal = keyof typeof passkeyRefusals

/** Ends a check; it never leaves `webauthn/`. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly refusal: PasskeyRefusal

  constructor(refusal: PasskeyRefusal, options?: ErrorOptions) {
    super(passkeyRefusals[refusal], options)
    this.refusal = refusal
  }
}

/** Throws `refusal` unless this holds. */
export const requireThat: (holds: boolean, refusal: PasskeyRefusal) => asserts holds = (holds, refusal) => {
  if (!holds) throw new Refused(refusal)
}

/** What came of a check. */
export type Judgement<Result> = { verified: Result; refused?: never } | { verified?: never; refused: PasskeyRefusal }

export const judge = <Result>(check: () => Result): Judgement<Result> => {
  try {
    return { verified: check() }
  } catch (error) {
    if (error instanceof Refused) return { refused: error.refusal }
    throw error
  }
}
