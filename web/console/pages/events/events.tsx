import { Page, Tabs } from '../../components/page.tsx'
import { Catalogue } from './catalogue.tsx'
import { Feed } from './feed.tsx'

const path = '/events'
const tabs = [
  { title: 'Catalogue', path },
  { title: 'Feed', path: `${path}/feed` },
]

/** What can happen here, and what did. */
const EventsPage = ({ params: { tab } }: { params: { tab?: string } }) => (
  <Page
    title="Events"
    lead="Every change leaves an event, in the transaction of the change. Hooks get them signed and in order; the feed keeps them for 14 days."
  >
    <Tabs tabs={tabs} current={tab === 'feed' ? `${path}/feed` : path} />
    {tab === 'feed' ? <Feed /> : <Catalogue />}
  </Page>
)

export default EventsPage
