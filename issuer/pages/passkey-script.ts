/**
 * The one script of the pages: it asks the browser for a passkey. Everything else works without it.
 *
 * A form with `data-passkey="get"` or `"create"` has its options as JSON in `data-options`, a hidden field `credential`
 * for the answer, and a `<button type="button" hidden>`, which the script shows. `data-autofill`: passkeys are offered
 * in the field with `autocomplete="… webauthn"` too. An element `[data-failed]` in it is shown when nothing came of it.
 */
export const passkeyScript = `
(() => {
  const api = window.PublicKeyCredential
  if (!api || !api.parseRequestOptionsFromJSON || !api.parseCreationOptionsFromJSON) return
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    const creates = form.dataset.passkey === 'create'
    const options = JSON.parse(form.dataset.options)
    const button = form.querySelector('button')
    const failed = form.querySelector('[data-failed]')
    let waiting
    const ask = async (mediation) => {
      if (waiting) waiting.abort()
      const mine = (waiting = new AbortController())
      try {
        const { signal } = mine
        const credential = creates
          ? await navigator.credentials.create({ publicKey: api.parseCreationOptionsFromJSON(options), signal })
          : await navigator.credentials.get({ publicKey: api.parseRequestOptionsFromJSON(options), signal, mediation })
        form.elements.credential.value = JSON.stringify(credential)
        const keep = document.querySelector('input[type=checkbox][name=keep]')
        if (form.elements.keep) form.elements.keep.value = keep && keep.checked ? 'yes' : ''
        form.submit()
      } catch (error) {
        if (mine.signal.aborted) return
        if (mediation === 'conditional') return
        if (failed) failed.hidden = false
        fill()
      }
    }
    const fill = async () => {
      if (creates || form.dataset.autofill === undefined || !api.isConditionalMediationAvailable) return
      if (await api.isConditionalMediationAvailable()) ask('conditional')
    }
    if (button) {
      button.hidden = false
      button.addEventListener('click', () => {
        if (failed) failed.hidden = true
        ask()
      })
    }
    fill()
  }
})()
`
  .replace(/\n\s*/g, '\n')
  .trim()
