import { useLocation } from 'wouter'
import { NewConnector } from '../connectors/new-connector.tsx'
import { socialFields } from './provider-fields.ts'

const NewSocial = () => {
  const [, navigate] = useLocation()
  return (
    <NewConnector
      title="New identity provider"
      above={{ title: 'Identity providers', path: '/identity-providers' }}
      here="/identity-providers/new/social"
      types={['Social']}
      further={({ id }) => socialFields(id === 'oidc', true)}
      onDone={(id) => navigate(`/identity-providers/social/${id}`)}
    />
  )
}

export default NewSocial
