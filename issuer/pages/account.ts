import { foreignName, initialOf } from './foreign-text.ts'
import { type Html, html } from './html.ts'

/** The person that is signed in. */
export interface PageAccount {
  name: string
  identifier: string
}

/** Both, or one where they are the same; `aside` stands at the end of the line. */
export const accountCard = (
  { name, identifier }: PageAccount,
  aside?: Html | undefined,
): Html => html`<div class="account">
<span class="letter" aria-hidden="true">${initialOf(name || identifier)}</span>
<span class="who"><b>${foreignName(name || identifier)}</b>${
  name !== '' && name !== identifier && html`<span>${foreignName(identifier)}</span>`
}</span>${aside}
</div>`
