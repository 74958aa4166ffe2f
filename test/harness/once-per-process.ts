/** Resources that several tests of a process share, across files. */
import { after } from 'node:test'

const openings: Promise<unknown>[] = []
/** In the order in which they were open: one that uses another is open after it. */
const opened: AsyncDisposable[] = []

// The runner imports this module before any test file, so that the hook belongs to the whole process.
after(async () => {
  await Promise.allSettled(openings.splice(0))
  const errors: unknown[] = []
  for (const resource of opened.splice(0).reverse())
    try {
      await resource[Symbol.asyncDispose]()
    } catch (error) {
      errors.push(error)
    }
  if (errors.length === 1) throw errors[0]
  if (errors.length > 1) throw new AggregateError(errors, 'the shared resources did not close well')
})

/** Opened by the first test that asks, and closed after the last one of the process, before what it uses. */
export function oncePerProcess<T extends AsyncDisposable>(open: () => Promise<T>): () => Promise<T> {
  let opening: Promise<T> | undefined
  return () => {
    if (opening) return opening
    opening = open().then((resource) => {
      opened.push(resource)
      return resource
    })
    // The caller gets the error of the opening.
    openings.push(opening)
    return opening
  }
}
