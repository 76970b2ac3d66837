import { useRead } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Assignments } from '../../components/assignments.tsx'
import { Button } from '../../components/button.tsx'
import { CreateForm } from '../../components/create-form.tsx'
import { Dialog, useDialog } from '../../components/dialog.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import { Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { TakeOut } from './take-out.tsx'

/** Who becomes a member without anybody adding them (just in time), and with which roles. */
export const Joining = ({ organizationId: id }: { organizationId: string }) => {
  const { data } = useRead('listSsoConnectors')
  const names = new Map((data?.body ?? []).map((connector) => [connector.id, connector.connectorName]))
  return (
    <>
      <Domains organizationId={id} />
      <Assignments
        title="Enterprises"
        lead="Whoever signs in through one of them joins."
        kind="enterprise"
        list={{ operation: 'listOrganizationJitSsoConnectors', input: { params: { id } } }}
        candidates={{ operation: 'listSsoConnectors' }}
        nameOf={(row) => names.get(row.id) ?? row.id}
        add={{
          operation: 'addOrganizationJitSsoConnectors',
          input: (ssoConnectorIds) => ({ params: { id }, body: { ssoConnectorIds } }),
        }}
        remove={{
          operation: 'deleteOrganizationJitSsoConnector',
          input: (ssoConnectorId) => ({ params: { id, ssoConnectorId } }),
        }}
        empty="Nobody joins through an enterprise."
      />
      <Assignments
        title="Roles on joining"
        lead="What people get who join by themselves."
        kind="role"
        list={{ operation: 'listOrganizationJitRoles', input: { params: { id } } }}
        candidates={{ operation: 'listOrganizationRoles', searchedBy: 'q' }}
        nameOf={({ name }) => name}
        detailOf={({ description }) => description}
        link={({ id: roleId }) => `/organization-template/roles/${roleId}`}
        add={{
          operation: 'addOrganizationJitRoles',
          input: (organizationRoleIds) => ({ params: { id }, body: { organizationRoleIds } }),
        }}
        remove={{
          operation: 'deleteOrganizationJitRole',
          input: (organizationRoleId) => ({ params: { id, organizationRoleId } }),
        }}
        empty="They join without a role."
      />
    </>
  )
}

const Domains = ({ organizationId: id }: { organizationId: string }) => {
  const dialog = useDialog('add domain')
  const { data, error } = useRead('listOrganizationJitEmailDomains', { params: { id } })
  return (
    <Section
      title="Address domains"
      lead="Whoever registers with a verified address of one of them joins."
      actions={
        <Allowed operation="createOrganizationJitEmailDomain">
          <Button icon="plus" onPress={dialog.open}>
            Add
          </Button>
        </Allowed>
      }
    >
      <ProblemNotice error={error} />
      {data ? (
        <Rows
          title="Address domains"
          empty="Nobody joins by their address."
          rows={data.body.map(({ emailDomain }) => ({
            key: emailDomain,
            title: emailDomain,
            actions: (
              <TakeOut
                name={emailDomain}
                operation="deleteOrganizationJitEmailDomain"
                input={{ params: { id, emailDomain } }}
              />
            ),
          }))}
        />
      ) : (
        !error && <Loading lines={2} />
      )}
      <Dialog title="Add a domain" isOpen={dialog.isOpen} onClose={dialog.close}>
        <CreateForm
          name="domain"
          operation="createOrganizationJitEmailDomain"
          params={{ id }}
          fields={[
            { path: 'emailDomain', label: 'Domain', isRequired: true, isCode: true, placeholder: 'example.com' },
          ]}
          label="Add domain"
          onDone={({ emailDomain }) => {
            announce(`People of ${emailDomain} join from now on.`)
            dialog.close()
          }}
        />
      </Dialog>
    </Section>
  )
}
