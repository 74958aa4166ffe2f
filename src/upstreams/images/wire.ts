import { Fault } from '#kernel/contract/fault.ts'
import { isRecord, parseJson } from '#kernel/wire/json.ts'

/** fal's protocol for text to image, in its synchronous form. */

export type ImageOrder = {
  prompt: string
  /** The size of each image in pixels. */
  size: { width: number; height: number }
  count: number
  steps: number
  seed: number
}
export type MadeImages = {
  urls: string[]
  inferenceSeconds: number
  seed: number
  flagged: boolean[]
}

const upstream = 'images'
const urlMax = 2_048

export const requestBody = ({ prompt, size, count, steps, seed }: ImageOrder): string =>
  JSON.stringify({
    prompt,
    image_size: { width: size.width, height: size.height },
    num_images: count,
    num_inference_steps: steps,
    seed,
    enable_safety_checker: true,
  })

export const unreadable = (what: string): Fault =>
  new Fault('upstream_rejected', `The image service sent ${what}`, { extras: { upstream } })

export function readAnswer(text: string, { count, seed }: ImageOrder): MadeImages {
  const body = parseJson(text)
  if (!isRecord(body) || !Array.isArray(body.images)) throw unreadable('no images')
  const urls = body.images.map((each) => (isRecord(each) ? each.url : undefined))
  if (urls.length !== count) throw unreadable(`${urls.length} images instead of ${count}`)
  if (!urls.every((url) => typeof url === 'string' && url.length <= urlMax))
    throw unreadable('an image without an address')
  const inference = isRecord(body.timings) ? body.timings.inference : undefined
  const flags = Array.isArray(body.has_nsfw_concepts) ? body.has_nsfw_concepts : []
  return {
    urls: urls as string[],
    inferenceSeconds: typeof inference === 'number' && inference >= 0 ? inference : 0,
    seed: Number.isSafeInteger(body.seed) ? Number(body.seed) : seed,
    flagged: urls.map((_, at) => flags[at] === true),
  }
}

/** Returns the fault for an error status. The service's words may repeat the prompt or the key, so they stay out. */
export function statusFault(status: number, text: string, retryAfterMs: number | undefined): Fault {
  const extras = { upstream, upstream_status: status }
  if (status === 401 || status === 403)
    return new Fault('upstream_rejected', 'The image service does not accept the key', { extras })
  if (status === 422 || status === 400)
    return new Fault('upstream_rejected', `The image service rejected the request${fieldsOf(text)}`, {
      extras,
    })
  if (status === 429 || status >= 500) {
    const sentence =
      status === 429 ? 'The image service limits our requests' : 'The image service does not work at present'
    const retryAfter = retryAfterMs !== undefined && { retry_after: Math.ceil(retryAfterMs / 1_000) }
    return new Fault('unavailable', sentence, { extras: { ...extras, ...retryAfter } })
  }
  return new Fault('upstream_rejected', 'The image service refused the request', { extras })
}

const fieldForm = /^[a-z_]{1,40}$/

/** Returns the fields that a 422 in FastAPI's form names. */
function fieldsOf(text: string): string {
  const body = parseJson(text)
  const items = isRecord(body) && Array.isArray(body.detail) ? body.detail : []
  const names = items.flatMap((item) => {
    const last = isRecord(item) && Array.isArray(item.loc) ? item.loc.at(-1) : undefined
    return typeof last === 'string' && fieldForm.test(last) ? [last] : []
  })
  return names.length > 0 ? `: ${[...new Set(names)].slice(0, 5).join(', ')}` : ''
}
