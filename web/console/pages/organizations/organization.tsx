import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { EntityId } from '../../components/copy.tsx'
import { EntityForm } from '../../components/entity-form.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Page, Tabs } from '../../components/page.tsx'
import { Applications } from './applications.tsx'
import { Hooks } from './hooks.tsx'
import { Joining } from './joining.tsx'
import { Members } from './members.tsx'
import { settings } from './organization-fields.ts'

const tabs = {
  members: 'Members',
  applications: 'Applications',
  joining: 'Joining',
  hooks: 'Hooks',
  settings: 'Settings',
}

/** One organization: who belongs to it, with which roles, and how others join. */
const OrganizationPage = ({ params: { id = '', tab = 'members' } }: { params: { id?: string; tab?: string } }) => {
  const [, navigate] = useLocation()
  const { data, error } = useRead('getOrganization', { params: { id } })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { body: organization, etag } = data
  const path = (name: string) => (name === 'members' ? `/organizations/${id}` : `/organizations/${id}/${name}`)
  return (
    <Page
      title={organization.name}
      above={{ title: 'Organizations', path: '/organizations' }}
      lead={
        <>
          {organization.description} <EntityId id={id} />{' '}
          {organization.isMfaRequired && <Badge>second factor required</Badge>}
        </>
      }
      actions={
        <ConfirmDeletion
          kind="organization"
          name={organization.name}
          operation="deleteOrganization"
          params={{ id }}
          onDone={() => navigate('/organizations')}
        />
      }
    >
      <Tabs tabs={Object.entries(tabs).map(([name, title]) => ({ title, path: path(name) }))} current={path(tab)} />
      {tab === 'members' && <Members organizationId={id} />}
      {tab === 'applications' && <Applications organizationId={id} />}
      {tab === 'joining' && <Joining organizationId={id} />}
      {tab === 'hooks' && <Hooks organizationId={id} />}
      {tab === 'settings' && (
        <EntityForm
          {...{ name: 'settings', operation: 'updateOrganization', params: { id } }}
          {...{ record: organization, etag, groups: settings }}
        />
      )}
    </Page>
  )
}

export default OrganizationPage
