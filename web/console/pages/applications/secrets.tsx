import { useState } from 'react'
import { useRead } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { CopyableText } from '../../components/copy.tsx'
import { CreateForm } from '../../components/create-form.tsx'
import { Dialog, DialogActions, useDialog } from '../../components/dialog.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { RelativeTime } from '../../components/time.tsx'

/** By what an application proves itself; values are shown once, when they are made. */
export const Secrets = ({ applicationId: id }: { applicationId: string }) => {
  const { data, error } = useRead('listApplicationSecrets', { params: { id } })
  return (
    <Section
      title="Secrets"
      lead="Two at a time let you change them without an interruption: make a second one, roll it out, delete the first."
      actions={<NewSecret applicationId={id} />}
    >
      <ProblemNotice error={error} />
      {data ? (
        <Rows
          title="Secrets"
          empty="It has no secret: nothing can authenticate as this application."
          rows={data.body.map(({ name, createdAt, expiresAt }) => ({
            key: name,
            title: name,
            facts: (
              <>
                made <RelativeTime at={createdAt} /> ·{' '}
                {expiresAt !== null && expiresAt < Date.now() ? (
                  <Badge kind="bad">expired</Badge>
                ) : (
                  <>
                    expires <RelativeTime at={expiresAt} />
                  </>
                )}
              </>
            ),
            actions: (
              <ConfirmDeletion
                kind="secret"
                name={name}
                operation="deleteApplicationSecret"
                params={{ id, name }}
                onDone={() => {}}
              />
            ),
          }))}
        />
      ) : (
        !error && <Loading lines={2} />
      )}
    </Section>
  )
}

const NewSecret = ({ applicationId: id }: { applicationId: string }) => {
  const dialog = useDialog('new-secret')
  const [value, setValue] = useState<string>()
  const close = () => {
    setValue(undefined)
    dialog.close()
  }
  return (
    <>
      <Allowed operation="createApplicationSecret">
        <Button icon="plus" onPress={dialog.open}>
          New secret
        </Button>
      </Allowed>
      <Dialog title={value ? 'The new secret' : 'New secret'} isOpen={dialog.isOpen} onClose={close} isStrict>
        {value === undefined ? (
          <CreateForm
            name="new secret"
            operation="createApplicationSecret"
            params={{ id }}
            fields={[{ path: 'name', label: 'Name', isRequired: true, hint: 'Where it is used, or since when.' }]}
            label="Make it"
            onDone={(answer) => setValue(answer.value)}
          />
        ) : (
          <>
            <CopyableText label="client secret" text={value} />
            <Notice kind="warn">This is the only time that it is shown.</Notice>
            <DialogActions>
              <Button kind="main" onPress={close}>
                I have it
              </Button>
            </DialogActions>
          </>
        )}
      </Dialog>
    </>
  )
}
