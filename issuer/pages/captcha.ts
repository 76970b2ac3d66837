import { captchaAsset } from './assets.ts'
import { type Html, html } from './html.ts'
import type { MessageKey } from './messages/translation.ts'
import type { Say } from './say.ts'

/** A test for machines, as plain data. */
export type CaptchaField =
  | { provider: 'proof_of_work'; challenge: string; difficulty: number }
  | { provider: 'turnstile'; siteKey: string; action: string; data: string }

/** A test within a form. */
export interface FormCaptcha {
  /** Its answer is sent as `captcha`. */
  field: Html
  /** What the page allows besides, so that it may run. */
  allowed: { scriptSource: string; frameSource: string | undefined }
}

/** Of a code by mail. */
type WithoutScript = MessageKey & ('captchaWithoutScript' | 'captchaWithoutScriptByMail')

/** Without scripts there is no answer: the page must offer a code by mail then, which the text tells. */
export const captchaField = (
  say: Say,
  test: CaptchaField,
  withoutScript: WithoutScript = 'captchaWithoutScript',
): FormCaptcha => {
  const text = html`<noscript><p class="small">${say(withoutScript)}</p></noscript>`
  return test.provider === 'turnstile' ? turnstile(test, text) : proofOfWork(say, test, text)
}

const proofOfWork = (
  say: Say,
  { challenge, difficulty }: CaptchaField & { provider: 'proof_of_work' },
  withoutScript: Html,
): FormCaptcha => ({
  // The script shows and hides what comes next to the field.
  field: html`<input type="hidden" name="captcha" data-challenge="${challenge}" data-difficulty="${difficulty}" autocomplete="off"><p class="small" role="status" hidden>${say('captchaWorking')}</p>
${withoutScript}
<script src="${captchaAsset.path}" integrity="${captchaAsset.integrity}" async></script>`,
  // Not every browser takes the digest of a script for that of a file.
  allowed: { scriptSource: "'self'", frameSource: undefined },
})

const turnstileOrigin = 'https://challenges.cloudflare.com'

const turnstile = (
  { siteKey, action, data }: CaptchaField & { provider: 'turnstile' },
  withoutScript: Html,
): FormCaptcha => ({
  field: html`<div class="cf-turnstile" data-sitekey="${siteKey}" data-action="${action}" data-cdata="${data}" data-response-field-name="captcha"></div>
${withoutScript}
<script src="${turnstileOrigin}/turnstile/v0/api.js" async></script>`,
  allowed: { scriptSource: turnstileOrigin, frameSource: turnstileOrigin },
})
