import type { Anvil } from './anvil.ts'
import { headOf } from './chain-time.ts'
import type { Rpc } from './rpc.ts'

const everyMs = 1_000
const pauseMsMax = 15_000

export type Autosave = {
  /** Returns the number of the newest saved block. */
  save: (anvil: Anvil, options?: { always?: boolean }) => Promise<number>
  /** Marks the chain as changed: the next interval checks it. */
  markDirty: () => void
  run: (anvil: Anvil) => Promise<void>
  whenIdle: () => Promise<unknown>
}

type Options = {
  write: (anvil: Anvil) => Promise<void>
  /** Whether the next save is overdue. */
  isUrgent: () => boolean
  onSaved: (rpc: Rpc, head: number) => Promise<void>
  onFailure: (error: Error) => void
}

/** Anvil's own periodic dump writes without need, and a kill can leave it incomplete; this one avoids both. */
export const createAutosave = ({ write, isUrgent, onSaved, onFailure }: Options): Autosave => {
  let savedHead = { hash: '', number: 0 }
  let isDirty = false
  let saving: Promise<unknown> = Promise.resolve()

  const save: Autosave['save'] = async (anvil, { always = false }: { always?: boolean } = {}) => {
    const { hash, number } = await headOf(anvil.rpc)
    if (hash === savedHead.hash && !always) return savedHead.number
    await write(anvil)
    savedHead = { hash, number }
    return number
  }

  const run = async (anvil: Anvil) => {
    const { child, rpc } = anvil
    let pauseMs = everyMs
    while (!child.hasExited()) {
      for (let waitedMs = 0; waitedMs < pauseMs; waitedMs += everyMs) {
        await new Promise((resolve) => setTimeout(resolve, everyMs).unref())
        if (isUrgent()) break
      }
      if (!isDirty || child.hasExited()) continue
      isDirty = false
      const startedMs = performance.now()
      saving = save(anvil, { always: isUrgent() })
        .then((head) => onSaved(rpc, head))
        .catch((error: Error) => {
          if (!child.hasExited()) onFailure(error)
        })
      await saving
      // A long history takes long to write, and must not use all of the time.
      pauseMs = Math.min(pauseMsMax, Math.max(everyMs, 5 * (performance.now() - startedMs)))
    }
  }

  return {
    save,
    run,
    markDirty: () => {
      isDirty = true
    },
    whenIdle: () => saving,
  }
}
