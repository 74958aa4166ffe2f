/** Resources that several tests of a process share, across files. */
import { after } from 'node:test'

const closings: (() => Promise<void>)[] = []

// The runner imports this module before any test file, so that the hook belongs to the whole process.
after(async () => {
  const ends = await Promise.allSettled(closings.splice(0).map((close) => close()))
  const errors = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
  if (errors.length === 1) throw errors[0]
  if (errors.length > 1) throw new AggregateError(errors, 'the shared resources did not close well')
})

/** Opened by the first test that asks, and closed after the last one of the process. */
export function oncePerProcess<T extends AsyncDisposable>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined
  return () => {
    if (opened) return opened
    const opening = open()
    opened = opening
    closings.push(async () => {
      // The caller already got the error of the opening.
      const held = await opening.catch(() => undefined)
      await held?.[Symbol.asyncDispose]()
    })
    return opening
  }
}
