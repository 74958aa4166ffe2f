/** What several tests of a process use, in however many files they stand. */
import { after } from 'node:test'

const closings: (() => Promise<void>)[] = []

// The runner imports this module before any file of tests, so that the hook is the one of the whole process.
after(async () => {
  const ends = await Promise.allSettled(closings.splice(0).map((close) => close()))
  const errors = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
  if (errors.length === 1) throw errors[0]
  if (errors.length > 1) throw new AggregateError(errors, 'what the tests shared did not end well')
})

/** Opened by the first test that asks, and closed after the last one of the process. */
export function oncePerProcess<T extends AsyncDisposable>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined
  return () => {
    if (opened) return opened
    const opening = open()
    opened = opening
    closings.push(async () => {
      // Who asked for it was told why it could not be opened.
      const held = await opening.catch(() => undefined)
      await held?.[Symbol.asyncDispose]()
    })
    return opening
  }
}
