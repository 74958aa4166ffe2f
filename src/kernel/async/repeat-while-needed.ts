import { type RepeatOptions, repeat } from './repeat.ts'

/** Repeats a job only while anybody needs it: each call needs it until its result is disposed. */
export function repeatWhileNeeded(run: () => Promise<unknown>, options: RepeatOptions): () => Disposable {
  let repeated: AsyncDisposable | undefined
  let needs = 0
  return () => {
    needs += 1
    repeated ??= repeat(run, options)
    let isOpen = true
    return {
      [Symbol.dispose]() {
        if (!isOpen) return
        isOpen = false
        needs -= 1
        if (needs > 0) return
        void repeated?.[Symbol.asyncDispose]()
        repeated = undefined
      },
    }
  }
}
