import { Page, Tabs } from '../../components/page.tsx'
import { ApiLog } from './api-log.tsx'
import { Reference } from './reference.tsx'
import { Tokens } from './tokens.tsx'

const tabs = [
  { title: 'API log', path: '/developer' },
  { title: 'Tokens', path: '/developer/tokens' },
  { title: 'API reference', path: '/developer/reference' },
]

/** For whoever writes against the issuer. */
const Developer = ({ params: { tab } }: { params: { tab?: string } }) => (
  <Page title="Developer" lead="What this console asks the API, what is in a token, and what there is to call.">
    <Tabs tabs={tabs} current={tab ? `/developer/${tab}` : '/developer'} />
    {tab === 'tokens' ? <Tokens /> : tab === 'reference' ? <Reference /> : <ApiLog />}
  </Page>
)

export default Developer
