import { Page, Section } from '../../components/page.tsx'
import { RequestField } from './request-field.tsx'

/** From the id that somebody was given with an answer. */
const Ask = () => (
  <Page
    title="Why"
    lead="Why a request was allowed, denied or failed: route, token, rules, and what would have allowed it."
  >
    <Section title="Which request?">
      <RequestField />
    </Section>
  </Page>
)

export default Ask
