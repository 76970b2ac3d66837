import { script } from './assets.ts'
import { type Html, html } from './html.ts'

export interface PasskeyForm {
  action: string
  csrf: string
  /** `get`: one that there is. `create`: a new one. */
  kind: 'get' | 'create'
  /** What `PublicKeyCredential.parse…OptionsFromJSON` takes. */
  options: unknown
  /** The proof that waits for the answer; the form sends it as `proofId`. */
  proofId: string
  /** The button's words; undefined: there is none, and only autofill offers passkeys. */
  label: Html | undefined
  /** What is said when the browser gave no passkey. */
  failed: Html
  isAutofill?: boolean | undefined
  isQuiet?: boolean | undefined
  /** It adds to a proof that said already whether to stay signed in. */
  isSecond?: boolean | undefined
}

/** CSP of a page that has a form with a passkey: `scriptSource` of `page`. */
export const passkeyScriptSource = "'self'"

/**
 * A form that only the script can send (`passkey-script.ts`). It posts `choice=passkey`, `proofId` and `credential`:
 * JSON for `authenticationCredential` or `registrationCredential`. The page says `scriptSource: passkeyScriptSource`.
 */
export const passkeyForm = (form: PasskeyForm): Html => {
  const { action, csrf, kind, options, proofId, label, failed, isAutofill, isQuiet, isSecond } = form
  return html`
<form class="passkey" method="post" action="${action}" data-passkey="${kind}" data-options="${JSON.stringify(options)}"${
    isAutofill && html` data-autofill`
  }>
<input type="hidden" name="csrf" value="${csrf}">
<input type="hidden" name="choice" value="passkey">
<input type="hidden" name="proofId" value="${proofId}">
<input type="hidden" name="credential">
${!isSecond && html`<input type="hidden" name="keep">`}
${label && html`<p class="actions"><button type="button"${isQuiet && html` class="quiet"`} hidden>${label}</button></p>`}
<p class="message" role="status" data-failed hidden>${failed}</p>
</form>
<script src="${script.path}" defer></script>`
}
