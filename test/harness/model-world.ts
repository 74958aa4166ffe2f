/** The local model of a world of its own, and its control calls. */
import assert from 'node:assert/strict'
import { http } from './gateway.ts'
import { ownWorld } from './own-world.ts'

export type ModelWorld = {
  /** With `/v1`. */
  url: string
  control: <B = Record<string, unknown>>(method: string, path: string, body?: unknown) => Promise<B>
  /** Registers a script and returns the model that answers by it. */
  script: (turns: object[][], more?: object) => Promise<string>
  /** Removes scripts, settings, records and failures. */
  reset: () => Promise<void>
  /** The bodies that the model got, oldest first. */
  requests: () => Promise<Record<string, unknown>[]>
} & AsyncDisposable

export async function openModelWorld(): Promise<ModelWorld> {
  const world = await ownWorld([])
  let scripts = 0
  const control = async <B>(method: string, path: string, body?: unknown): Promise<B> => {
    const reply = await http<B>(world.urls.control + path, { method, ...(body !== undefined && { body }) })
    assert.equal(reply.status, 200, `${method} ${path}: ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  return {
    url: world.urls.model,
    control,
    async script(turns, more = {}) {
      const name = `script-${++scripts}`
      await control('PUT', '/model/scripts', { name, turns, ...more })
      return `local-${name}`
    },
    async reset() {
      await control('DELETE', '/model/scripts')
      await control('DELETE', '/model/settings')
      await control('DELETE', '/model/requests')
      await control('DELETE', '/faults')
    },
    async requests() {
      type Recorded = { requests: { body: Record<string, unknown> }[] }
      return (await control<Recorded>('GET', '/model/requests')).requests.map(({ body }) => body)
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

export const text = (words: string, more: object = {}) => ({ type: 'text', text: words, ...more })
export const tools = (calls: object[], more: object = {}) => ({ type: 'tools', calls, ...more })
