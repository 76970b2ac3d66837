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
  isQuiet?: boolean | undefined
  /** It adds to a proof that said already whether to stay signed in. */
  isSecond?: boolean | undefined
  /** The browser also acts by itself: `get` offers passkeys in the list under the field, `create` makes one. */
  isConditional?: boolean | undefined
  /** `create`: the person has none. The browser forgets those of theirs that were removed. */
  isFirst?: boolean | undefined
}

/** CSP of a page that has a form with a passkey: `scriptSource` of `page`. */
export const passkeyScriptSource = "'self'"

/** In a form of a page that has one with a passkey too: it says `yes` where the browser can make passkeys. */
export const makesPasskeysField = html`<input type="hidden" name="makesPasskeys">`

/**
 * A form that only the script can send (`passkey-script.ts`). It posts `choice=passkey`, `proofId` and `credential`:
 * JSON for `authenticationCredential` or `registrationCredential`. The page says `scriptSource: passkeyScriptSource`.
 */
export const passkeyForm = (form: PasskeyForm): Html => {
  const { action, csrf, kind, options, proofId, label, failed, isConditional, isFirst } = form
  return html`
<form class="passkey" method="post" action="${action}" data-passkey="${kind}" data-options="${JSON.stringify(options)}"${
    isConditional && html` data-conditional`
  }${isFirst && html` data-first`}>
<input type="hidden" name="csrf" value="${csrf}">
<input type="hidden" name="choice" value="passkey">
<input type="hidden" name="proofId" value="${proofId}">
<input type="hidden" name="credential">
${!form.isSecond && html`<input type="hidden" name="keep">`}
${label && html`<p class="actions"><button type="button"${form.isQuiet && html` class="quiet"`} hidden>${label}</button></p>`}
<p class="message" role="status" hidden>${failed}</p>
</form>
<script src="${script.path}" defer></script>`
}
