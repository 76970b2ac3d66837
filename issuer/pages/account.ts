import { foreignName, initialOf } from './foreign-text.ts'
import { type Html, html } from './html.ts'

/** The person that is signed in. */
export interface PageAccount {
  name: string
  identifier: string
}

/** Longer than nearly all addresses; where it is cut, the name still says who it is. */
const identifierLength = 100

/** Both, or one where they are the same; `aside` stands at the end of the line. */
export const accountCard = (
  { name, identifier }: PageAccount,
  aside?: Html | undefined,
): Html => html`<div class="account">
<span class="letter" aria-hidden="true">${initialOf(name || identifier)}</span>
<span class="who"><b>${foreignName(name || identifier)}</b>${
  name !== '' && name !== identifier && html`<span>${foreignName(identifier, identifierLength)}</span>`
}</span>${aside}
</div>`
