import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { NewConnector } from '../connectors/new-connector.tsx'

const NewMessageConnector = ({ params: { type } }: { params: { type?: string } }) => {
  const [, navigate] = useLocation()
  const { data } = useRead('listConnectors')
  const wanted = type === 'Sms' ? 'Sms' : 'Email'
  const before = data?.body.find((connector) => connector.type === wanted)
  return (
    <NewConnector
      title={wanted === 'Sms' ? 'Text messages' : 'Mail'}
      above={{ title: 'Messages', path: '/messages' }}
      here={`/messages/new/${wanted}`}
      types={[wanted]}
      warning={before && `It takes the place of ${before.name}, whose configuration and templates go.`}
      onDone={(id) => navigate(`/messages/${id}`)}
    />
  )
}

export default NewMessageConnector
