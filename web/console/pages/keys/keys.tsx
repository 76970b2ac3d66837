import { Page } from '../../components/page.tsx'
import { Chain } from './chain.tsx'

/** The keys that sign tokens, from the next to those before. */
const KeysPage = () => (
  <Page
    title="Signing keys"
    lead="By them APIs know that a token is from here. A key is published first, signs then, and stays published until the last token that it signed has ended."
  >
    <Chain
      {...{ title: 'Tokens', lead: 'Signs access tokens, and ID tokens of applications that do not ask for RS256.' }}
      {...{ list: 'listSigningKeys', rotate: 'rotateSigningKeys', remove: 'deleteSigningKey' }}
      hasAlgorithm
      ends="every token signed so far, also ID tokens"
    />
    <Chain
      {...{ title: 'ID tokens with RS256', lead: 'For applications that ask for them, and nothing else.' }}
      {...{ list: 'listIdTokenKeys', rotate: 'rotateIdTokenKeys', remove: 'deleteIdTokenKey' }}
      ends="every ID token that these keys signed; access tokens stay"
    />
  </Page>
)

export default KeysPage
