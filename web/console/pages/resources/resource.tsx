import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { useSession } from '../../api/session.tsx'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { EntityForm } from '../../components/entity-form.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Page, type PageProps, Tabs } from '../../components/page.tsx'
import { DefaultResource } from './default-resource.tsx'
import { Permissions } from './permissions.tsx'

const Resource = ({ params: { id = '', tab = 'permissions' } }: PageProps) => {
  const [, navigate] = useLocation()
  const { baseUrl } = useSession()
  const { data, error } = useRead('getResource', { params: { id } })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { body: resource, etag } = data
  const isOurs = resource.indicator === `${baseUrl}/api`
  const path = (name: string) => (name === 'permissions' ? `/resources/${id}` : `/resources/${id}/${name}`)
  return (
    <Page
      title={resource.name}
      above={{ title: 'Resources', path: '/resources' }}
      lead={
        <>
          <code>{resource.indicator}</code> {resource.isDefault && <Badge>default</Badge>}
        </>
      }
      actions={
        !isOurs && (
          <ConfirmDeletion
            kind="resource"
            name={resource.name}
            operation="deleteResource"
            params={{ id }}
            onDone={() => navigate('/resources')}
          />
        )
      }
    >
      {isOurs && <Notice>This is the Management API itself: it comes with the issuer and does not change.</Notice>}
      <Tabs
        tabs={[
          { title: 'Permissions', path: path('permissions') },
          ...(isOurs ? [] : [{ title: 'Settings', path: path('settings') }]),
        ]}
        current={path(tab)}
      />
      {tab === 'permissions' && <Permissions resourceId={id} isFixed={isOurs} />}
      {tab === 'settings' && (
        <>
          <DefaultResource resource={resource} />
          <EntityForm
            {...{ name: 'settings', operation: 'updateResource', params: { id }, record: resource, etag }}
            groups={{
              Settings: [
                { path: 'name', label: 'Name', isRequired: true },
                {
                  ...{ path: 'accessTokenTtl', label: 'Seconds of an access token', kind: 'number', isRequired: true },
                  hint: 'Shorter is safer; refresh tokens make up for it.',
                },
              ],
            }}
          />
        </>
      )}
    </Page>
  )
}

export default Resource
