import { setTimeout as delay } from 'node:timers/promises'
import type { RequestInit, Response } from 'undici'
import { Fault } from '#kernel/contract/fault.ts'
import type { Net, NetReply } from '#kernel/wire/upstream-http.ts'
import { type ImageHeader, readImageHeader } from './image-header.ts'
import { type ImageOrder, type MadeImages, readAnswer, requestBody, statusFault, unreadable } from './wire.ts'

/** Makes images with a service that speaks fal's protocol. */

export type LoadedImage = ImageHeader & { bytes: Uint8Array; flagged: boolean }
export type Images = {
  /** Asks the service for images. The request is repeated once if nothing was sent, and once after 429 or 503. */
  make(order: ImageOrder, signal: AbortSignal): Promise<MadeImages>
  load(made: MadeImages, signal: AbortSignal): Promise<LoadedImage[]>
}

type ImagesOptions = {
  url: string
  /** The model, such as `fal-ai/flux/schnell`. */
  app: string
  key: string | undefined
  net: Net
  /** Fetches addresses that the service names: only public ones, and within limits. */
  fetchPublic: (url: string, init?: RequestInit) => Promise<Response>
  imageBytesMax: number
  timeoutMs?: number
  pauseMs?: number
}

const upstream = 'images'
const answerBytesMax = 256 * 1_024
const defaultTimeoutMs = 60_000
const defaultPauseMs = 500
const pauseMsMax = 5_000

export function createImageService({
  url,
  app,
  key,
  net,
  fetchPublic,
  imageBytesMax,
  timeoutMs = defaultTimeoutMs,
  pauseMs = defaultPauseMs,
}: ImagesOptions): Images {
  const send = (order: ImageOrder, signal: AbortSignal): Promise<NetReply> =>
    net.fetch({
      url: `${url.replace(/\/+$/, '')}/${app}`,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(key !== undefined && { authorization: `Key ${key}` }),
      },
      body: requestBody(order),
      timeoutMs,
      signal,
      maxBytes: answerBytesMax,
    })

  const load = async (address: string, signal: AbortSignal): Promise<Omit<LoadedImage, 'flagged'>> => {
    const bytes = await readPublic({ address, signal, fetchPublic, bytesMax: imageBytesMax })
    const header = readImageHeader(bytes)
    if (!header) throw unreadable('a file that is no PNG and no JPEG')
    return { ...header, bytes }
  }

  return {
    async make(order, signal) {
      let reply = await send(order, signal).catch(async (error: unknown) => {
        // `unavailable` is certain: the connection was refused, so nothing was sent.
        if (!(error instanceof Fault) || error.code !== 'unavailable') throw error
        await delay(pauseMs, undefined, { signal })
        return send(order, signal)
      })
      if (reply.status === 429 || reply.status === 503) {
        await delay(Math.min(reply.retryAfterMs ?? pauseMs, pauseMsMax), undefined, { signal })
        reply = await send(order, signal)
      }
      if (reply.status !== 200) throw statusFault(reply.status, reply.body, reply.retryAfterMs)
      return readAnswer(reply.body, order)
    },
    load: ({ urls, flagged }, signal) =>
      Promise.all(
        urls.map(async (address, at) => ({
          ...(await load(address, signal)),
          flagged: flagged[at] === true,
        })),
      ),
  }
}

type PublicRead = Pick<ImagesOptions, 'fetchPublic'> & {
  address: string
  signal: AbortSignal
  bytesMax: number
}

const cannotBeRead = (why: string, cause?: unknown): Fault =>
  new Fault('upstream_rejected', `An image of the image service ${why}`, { cause, extras: { upstream } })

async function readPublic({ address, signal, fetchPublic, bytesMax }: PublicRead): Promise<Uint8Array> {
  const reply = await fetchPublic(address, { signal }).catch((cause: unknown) => {
    if (signal.aborted) throw cause
    throw cannotBeRead('cannot be fetched', cause)
  })
  try {
    if (reply.status !== 200) throw cannotBeRead(`answers ${reply.status}`)
    if (!/^image\/(?:png|jpe?g)\b/.test(reply.headers.get('content-type') ?? ''))
      throw cannotBeRead('is no PNG and no JPEG')
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of reply.body ?? []) {
      size += chunk.length
      if (size > bytesMax) throw cannotBeRead(`has more than ${bytesMax} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  } catch (cause) {
    await reply.body?.cancel().catch(() => undefined)
    if (cause instanceof Fault || signal.aborted) throw cause
    throw cannotBeRead('broke off', cause)
  }
}
