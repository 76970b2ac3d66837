/** Whether this browser makes passkeys at this address: not where the address is not secure. */
export const makesPasskeys = (): boolean =>
  'PublicKeyCredential' in globalThis && 'parseCreationOptionsFromJSON' in PublicKeyCredential

/** Asks the person for one; throws in words for them when nothing comes of it. */
export const makePasskey = async (options: unknown): Promise<unknown> => {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as PublicKeyCredentialCreationOptionsJSON)
  const credential = await navigator.credentials.create({ publicKey }).catch(() => {
    throw new Error('No passkey was made. Try again, or use a password.')
  })
  return (credential as PublicKeyCredential).toJSON()
}
