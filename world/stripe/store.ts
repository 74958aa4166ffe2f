import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readIfPresent, replaceFile } from '#world/atomic-file.ts'
import { missing } from './errors.ts'
import { type AnyObject, type ObjectName, type Objects, prefixes } from './objects.ts'

/** What the provider knows, in one file that is replaced after changes. */

export type Delivery = {
  url: string
  secret: string
  /** The event, and how this delivery differs from an honest one. */
  event: string
  body: string
  lie?: 'forged' | 'changed' | 'old' | 'future' | 'live'
  dueMs: number
  attempts: number
}
export type StoredReply = {
  fingerprint: string
  requestId: string
  status: number
  body: string
  atMs: number
}
type Saved = {
  objects: AnyObject[]
  replies: [string, StoredReply][]
  deliveries: Delivery[]
}

/** How many of each are stored at most; the oldest are dropped. Subscriptions and what was paid for them stay. */
const storedMax: Partial<Record<ObjectName, number>> = {
  event: 5_000,
  'checkout.session': 5_000,
  'billing_portal.session': 1_000,
}
const repliesMax = 5_000
const deliveriesMax = 20_000
const idBytes = 12
const saveAfterMs = 20

function dropOldest(all: Map<string, unknown>, countMax = Number.POSITIVE_INFINITY): void {
  for (const id of all.keys()) {
    if (all.size <= countMax) return
    all.delete(id)
  }
}

export type Store = Awaited<ReturnType<typeof openStore>>

export async function openStore(dir: string) {
  const path = join(dir, 'stripe.json')
  const text = await readIfPresent(path)
  const saved: Saved =
    text === undefined ? { objects: [], replies: [], deliveries: [] } : (JSON.parse(text) as Saved)
  const kinds = new Map<ObjectName, Map<string, AnyObject>>()
  const kindOf = (name: ObjectName) => {
    const known = kinds.get(name) ?? new Map<string, AnyObject>()
    kinds.set(name, known)
    return known
  }
  for (const each of saved.objects) kindOf(each.object).set(each.id, each)
  const replies = new Map(saved.replies)
  const deliveries = saved.deliveries
  let timer: NodeJS.Timeout | undefined
  let saving = Promise.resolve()

  const write = () => {
    dropOldest(replies, repliesMax)
    deliveries.splice(0, Math.max(0, deliveries.length - deliveriesMax))
    const state: Saved = {
      objects: [...kinds.values()].flatMap((each) => [...each.values()]),
      replies: [...replies],
      deliveries,
    }
    saving = saving.catch(() => {}).then(() => replaceFile(path, JSON.stringify(state)))
    return saving
  }
  const save = () => {
    timer ??= setTimeout(() => {
      timer = undefined
      void write().catch(() => {})
    }, saveAfterMs)
  }

  const find = <Name extends ObjectName>(name: Name, id: string): Objects[Name] | undefined =>
    kindOf(name).get(id) as Objects[Name] | undefined
  return {
    replies,
    deliveries,
    save,
    /** Adds an object under a new id, or under its own. */
    add<Name extends ObjectName>(object: Objects[Name] & { object: Name }): Objects[Name] {
      const all = kindOf(object.object)
      all.set(object.id, object)
      dropOldest(all, storedMax[object.object])
      save()
      return object
    },
    newId: (name: ObjectName): string => `${prefixes[name]}_${randomBytes(idBytes).toString('hex')}`,
    find,
    get<Name extends ObjectName>(name: Name, id: string): Objects[Name] {
      const object = find(name, id)
      if (!object) throw missing(name.replace('.', ' '), id)
      return object
    },
    isStored: (object: object): object is AnyObject =>
      'object' in object &&
      'id' in object &&
      kinds.get(object.object as ObjectName)?.get(object.id as string) === object,
    remove: (name: ObjectName, id: string) => {
      kindOf(name).delete(id)
      save()
    },
    /** The objects of a kind, newest first. */
    all: <Name extends ObjectName>(name: Name): Objects[Name][] =>
      ([...kindOf(name).values()] as Objects[Name][]).reverse(),
    async close() {
      if (timer) clearTimeout(timer)
      await write().catch(() => {})
    },
  }
}
