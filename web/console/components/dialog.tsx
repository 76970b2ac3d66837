import type { ReactNode } from 'react'
import { Dialog as AriaDialog } from 'react-aria-components/Dialog'
import { Heading } from 'react-aria-components/Heading'
import { Modal, ModalOverlay } from 'react-aria-components/Modal'
import { useSearchParams } from 'wouter'
import style from './dialog.module.css'

interface DialogProps {
  title: string
  isOpen: boolean
  onClose(): void
  /** It wants an answer: pressing beside it does not close it. */
  isStrict?: boolean
  children: ReactNode
}

export const Dialog = ({ title, isOpen, onClose, isStrict = false, children }: DialogProps) => (
  <ModalOverlay
    isOpen={isOpen}
    onOpenChange={(open) => {
      if (!open) onClose()
    }}
    isDismissable={!isStrict}
    className={style.veil!}
  >
    <Modal className={style.modal!}>
      <AriaDialog className={style.dialog!} {...(isStrict && { role: 'alertdialog' as const })}>
        <Heading slot="title" level={2}>
          {title}
        </Heading>
        {children}
      </AriaDialog>
    </Modal>
  </ModalOverlay>
)

/** The buttons at the end of a dialog. */
export const DialogActions = ({ children }: { children: ReactNode }) => <div className={style.actions}>{children}</div>

/** A dialog has an address: it is open while `?open=` names it, also after the person has signed in again. */
export const useDialog = (name: string) => {
  const [search, setSearch] = useSearchParams()
  const set = (value: string | undefined) =>
    setSearch((before) => {
      const next = new URLSearchParams(before)
      if (value === undefined) next.delete('open')
      else next.set('open', value)
      return next
    })
  return {
    isOpen: search.get('open') === name,
    open: () => set(name),
    close: () => set(undefined),
  }
}
