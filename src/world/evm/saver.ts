import type { Anvil } from './anvil.ts'
import { headOf } from './chain-time.ts'
import type { Rpc } from './rpc.ts'

const everyMs = 1_000
const pauseMsMax = 15_000

export type Saver = {
  /** Answers the number of the newest block that is saved. */
  save: (anvil: Anvil, always?: boolean) => Promise<number>
  /** Something may have changed: the next round looks. */
  mark: () => void
  keepSaving: (anvil: Anvil) => Promise<void>
  settled: () => Promise<unknown>
}

type Options = {
  write: (anvil: Anvil) => Promise<void>
  /** Whether the next save should not wait any longer. */
  isUrgent: () => boolean
  saved: (rpc: Rpc, head: number) => Promise<void>
  onFailure: (error: Error) => void
}

/** Anvil's own periodic dump writes without need and can be torn by a kill; this one does neither. */
export const saver = ({ write, isUrgent, saved, onFailure }: Options): Saver => {
  let savedHead = { hash: '', number: 0 }
  let marked = false
  let saving: Promise<unknown> = Promise.resolve()

  const save: Saver['save'] = async (anvil, always = false) => {
    const { hash, number } = await headOf(anvil.rpc)
    if (hash === savedHead.hash && !always) return savedHead.number
    await write(anvil)
    savedHead = { hash, number }
    return number
  }

  const keepSaving = async (anvil: Anvil) => {
    const { child, rpc } = anvil
    let pauseMs = everyMs
    while (!child.hasExited()) {
      for (let waitedMs = 0; waitedMs < pauseMs; waitedMs += everyMs) {
        await new Promise((resolve) => setTimeout(resolve, everyMs).unref())
        if (isUrgent()) break
      }
      if (!marked || child.hasExited()) continue
      marked = false
      const began = performance.now()
      saving = save(anvil, isUrgent())
        .then((head) => saved(rpc, head))
        .catch((error: Error) => {
          if (!child.hasExited()) onFailure(error)
        })
      await saving
      // A long history takes long to write; it must not take all the time there is.
      pauseMs = Math.min(pauseMsMax, Math.max(everyMs, 5 * (performance.now() - began)))
    }
  }

  return {
    save,
    keepSaving,
    mark: () => {
      marked = true
    },
    settled: () => saving,
  }
}
