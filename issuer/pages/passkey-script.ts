/**
 * The one script of the pages: it asks the browser for a passkey. Everything else works without it.
 *
 * A form with `data-passkey="get"` or `"create"` has its options as JSON in `data-options`, a hidden field `credential`
 * for the answer, and a `<button type="button" hidden>`, which the script shows. Its `.message` is shown
 * when nothing came of it.
 *
 * `data-conditional`: the browser also acts by itself, and nothing is said when nothing comes of that. Passkeys that
 * there are it offers in the field with `autocomplete="… webauthn"`; a new one it makes where a password manager has
 * just filled in the password, without asking, so that nobody can be verified. `data-first`: the person has no passkey,
 * so the browser forgets those of theirs that were removed here.
 *
 * A field `makesPasskeys` elsewhere gets `yes` where the device can keep passkeys.
 */
export const passkeyScript = `
(() => {
  const api = window.PublicKeyCredential
  if (!api?.parseRequestOptionsFromJSON || !api.parseCreationOptionsFromJSON) return
  const makes = document.querySelector('[name=makesPasskeys]')
  const tell = async () => {
    if (await api.isUserVerifyingPlatformAuthenticatorAvailable()) makes.value = 'yes'
  }
  if (makes) tell()
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    const { passkey, conditional, first } = form.dataset
    const fields = form.elements
    const creates = passkey === 'create'
    const options = JSON.parse(form.dataset.options)
    const button = form.querySelector('button')
    const failed = form.querySelector('.message')
    let waiting
    const get = (how) => navigator.credentials.get({ publicKey: api.parseRequestOptionsFromJSON(options), ...how })
    const create = (how) => {
      const publicKey = api.parseCreationOptionsFromJSON(options)
      if (how.mediation) publicKey.authenticatorSelection.userVerification = 'preferred'
      return navigator.credentials.create({ publicKey, ...how })
    }
    const ask = async (mediation) => {
      waiting?.abort()
      const { signal } = (waiting = new AbortController())
      try {
        const credential = await (creates ? create : get)({ signal, mediation })
        fields.credential.value = JSON.stringify(credential)
        const keep = document.querySelector('input[type=checkbox][name=keep]')
        if (fields.keep) fields.keep.value = keep?.checked ? 'yes' : ''
        form.submit()
      } catch {
        if (signal.aborted || mediation) return
        failed.hidden = false
        waiting = undefined
        if (!creates) begin()
      }
    }
    const begin = async () => {
      if (conditional === undefined) return
      const can = creates
        ? (await api.getClientCapabilities?.())?.conditionalCreate
        : await api.isConditionalMediationAvailable?.()
      if (can && !waiting) ask('conditional')
    }
    if (button) {
      button.hidden = false
      button.addEventListener('click', () => {
        failed.hidden = true
        ask()
      })
    }
    if (first !== undefined) {
      const { rp, user } = options
      api
        .signalAllAcceptedCredentials?.({ rpId: rp.id, userId: user.id, allAcceptedCredentialIds: [] })
        .catch(() => {})
    }
    begin()
  }
})()
`
  .replace(/\n\s*/g, '\n')
  .trim()
