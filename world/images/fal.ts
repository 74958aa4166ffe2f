import { randomBytes, randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { type ImageInput, readInput } from './input.ts'
import { paintPicture } from './picture.ts'
import { createQueue, type Request, type Result, send } from './queue.ts'
import type { ImageState } from './state.ts'

/**
 * fal's protocol: `POST /{app}` answers with the result; below `/queue` the same request is queued and its status,
 * result and end are asked for. Results name files on the same server.
 */

type Picture = { bytes: Buffer; contentType: string }

const filesMax = 200
const oversizedBytes = 24 * 1024 * 1024

export const createFal = (state: ImageState) => {
  const files = new Map<string, Picture>()
  /** Pictures are painted one after another, as by one machine. */
  let machine: Promise<unknown> = Promise.resolve()

  const keep = (picture: Picture, extension: string): string => {
    const name = `${randomBytes(12).toString('base64url')}.${extension}`
    files.set(name, picture)
    const oldest = files.keys().next().value
    if (files.size > filesMax && oldest !== undefined) files.delete(oldest)
    return name
  }

  const paint = async (input: ImageInput, origin: string): Promise<Result> => {
    const startedMs = performance.now()
    const { mistake, latencyMs, foreignUrl } = state.settings
    if (latencyMs > 0) await delay(latencyMs)
    const images: { url: string; width: number; height: number; content_type: string }[] = []
    const flags: boolean[] = []
    for (let index = 0; index < input.count; index++) {
      const { png, flagged } = await paintPicture({ ...input, index })
      const bytes = mistake === 'oversized' ? Buffer.concat([png, Buffer.alloc(oversizedBytes)]) : png
      const contentType = mistake === 'content_type' ? 'text/html' : 'image/png'
      const name = keep(
        { bytes: mistake === 'wrong_bytes' ? Buffer.from('<svg/>') : bytes, contentType },
        'png',
      )
      const file = mistake === 'dead_url' ? 'gone.png' : name
      const url = mistake === 'foreign_url' ? foreignUrl : `${origin}/files/${file}`
      images.push({ url, width: input.width, height: input.height, content_type: 'image/png' })
      flags.push(flagged)
    }
    if (mistake === 'missing_image') images.pop()
    const timings = { inference: (performance.now() - startedMs) / 1_000 }
    return {
      status: 200,
      body: { images, timings, seed: input.seed, has_nsfw_concepts: flags, prompt: input.prompt },
    }
  }

  const run = (app: string, body: Buffer, origin: string): Promise<Result> => {
    const parsed = parse(body)
    if (parsed === undefined)
      return Promise.resolve(invalid([{ loc: ['body'], msg: 'JSON decode error', type: 'json_invalid' }]))
    state.record(app, parsed as Record<string, unknown>)
    const read = readInput(parsed)
    if ('errors' in read) return Promise.resolve(invalid(read.errors))
    if (state.settings.rejects)
      return Promise.resolve(
        invalid([
          {
            loc: ['body', 'prompt'],
            msg: 'The content could not be processed',
            type: 'content_policy_violation',
          },
        ]),
      )
    const painted = machine.then(() => paint(read.input, origin))
    machine = painted.catch(() => undefined)
    return painted
  }

  const { enqueue, answerQueue } = createQueue(run)

  return async (request: Request): Promise<void> => {
    const { incoming, answer, body, origin } = request
    const path = decodeURI((incoming.url ?? '/').split('?')[0] ?? '/').replace(/^\/|\/$/g, '')
    if (path.startsWith('files/')) return sendFile(answer, files.get(path.slice('files/'.length)))
    const { keys, mistake } = state.settings
    if (keys.length > 0 && !keys.some((key) => incoming.headers.authorization === `Key ${key}`))
      return send(answer, 401, {
        detail: 'Cannot access application. Authentication is required to access this application.',
      })
    const isQueue = path.startsWith('queue/')
    const rest = isQueue ? path.slice('queue/'.length) : path
    if (isQueue && answerQueue(rest, request)) return
    if (!/^[\w.-]+(?:\/[\w.-]+){1,4}$/.test(rest))
      return send(answer, 404, { detail: 'Application not found' })
    if (incoming.method !== 'POST') return send(answer, 405, { detail: 'Method Not Allowed' })
    if (isQueue) return enqueue(rest, request)
    const { status, body: result } = await run(rest, body, origin)
    if (mistake === 'not_json')
      return void answer.writeHead(200, { 'content-type': 'text/html' }).end('<html></html>')
    send(answer, status, result, randomUUID())
  }
}

const parse = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

const invalid = (detail: readonly object[]): Result => ({ status: 422, body: { detail } })

const sendFile = (answer: ServerResponse, picture: Picture | undefined): void => {
  if (!picture) {
    send(answer, 404, { detail: 'Not Found' })
    return
  }
  answer.writeHead(200, { 'content-type': picture.contentType, 'content-length': picture.bytes.length })
  answer.end(picture.bytes)
}
