import type { Ledger } from '#durable/ledger/ledger.ts'
import { type Files, fileBytesMax } from '#engines/files/files.ts'
import type { Credits } from '#features/credits/credits.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Asker, Caller } from '#kernel/contract/caller.ts'
import { Fault, type FaultCode, faults, invalid } from '#kernel/contract/fault.ts'
import {
  type EndedTask,
  type InputOf,
  implement,
  type Operation,
  type Payer,
  taskOf,
} from '#kernel/contract/operation.ts'
import { type Random, sha256 } from '#kernel/id.ts'
import { postDraw } from '#kernel/task/ledger-draw.ts'
import type { StepContext, StepResult, TaskView } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import type { Images, LoadedImage } from '#upstreams/images/images.ts'
import * as store from './backend-store.ts'
import { contract } from './contract.ts'
import { sideMax, sideMin, sizeOf } from './sizes.ts'

/** The images of one call are a task of the payer, which holds one credit until the images are stored. */

type ImageDeps = {
  db: Queryable
  ledger: Pick<Ledger, 'drawn'>
  credits: Pick<Credits, 'draw' | 'available'>
  files: Files
  images: Images
  clock: Clock
  random: Random
}
type Input = InputOf<(typeof contract)['entries']['create']>
type Data = JsonObject & {
  prompt: string
  width: number
  height: number
  count: number
  steps: number
  seed: number
  /** The user for whom the backend asks; this user pays unless the backend has an account of its own. */
  user: string
}
type Result = {
  images: { file_id: string; sha256: string; width: number; height: number; content_type: string }[]
  inference_seconds: number
  seed: number
  has_nsfw_concepts: boolean[]
  prompt: string
}

export const creditsPerCall = 1n
/** A step may take longer than the time limits of the image service and of the file store together. */
const stepTimeoutMs = 80_000

export const createImage = (deps: ImageDeps): Operation[] =>
  implement(contract, {
    create: {
      ...taskOf({
        admit: (input: Input, asker: Pick<Asker, 'userId'>) => admit(deps, input, asker),
        steps: { make: (task: TaskView<Data>, context: StepContext) => make(deps, task, context) },
        // The service charges for each request, so a failure goes back to the caller, who decides whether to repeat it.
        retry: { attemptsMax: 1, firstMs: 0, maxMs: 0 },
        stepTimeoutMs,
        payerOf: payerOf(deps),
        finish: (task: EndedTask, payer: Caller) => finish(deps, task, payer),
      }),
    },
  })

async function admit({ credits, random }: ImageDeps, input: Input, { userId }: Pick<Asker, 'userId'>) {
  const size = sizeOf(input.image_size ?? null)
  if (!size)
    throw invalid(
      'image_size',
      'value_error',
      `Input should be a named size or <height>x<width>, each from ${sideMin} to ${sideMax}`,
    )
  const data: Data = {
    prompt: input.query,
    width: size.width,
    height: size.height,
    count: input.num_images ?? 1,
    steps: input.num_inference_steps ?? 4,
    // The seed is chosen here, so that a second attempt after a crash makes the same images.
    seed: input.seed ?? Buffer.from(random.bytes(4)).readUInt32BE(),
    user: input.user,
  }
  const draw = await credits.draw(userId, creditsPerCall, 'image')
  return { data, first: 'make' as const, draw }
}

async function make(
  { db, files, images, ledger }: ImageDeps,
  { data, userId, id }: TaskView<Data>,
  { signal }: StepContext,
): Promise<StepResult<Data, 'make'>> {
  const { prompt, width, height, count, steps, seed } = data
  const made = await images.make({ prompt, size: { width, height }, count, steps, seed }, signal)
  const loaded = await images.load(made, signal)
  const result: Result = {
    images: await storeAll(loaded, { files, userId, taskId: id }),
    inference_seconds: made.inferenceSeconds,
    seed: made.seed,
    has_nsfw_concepts: loaded.map(({ flagged }) => flagged),
    prompt,
  }
  return {
    end: 'completed',
    outcome: 'executed',
    result,
    moves: postDraw(await ledger.drawn(db, id), creditsPerCall),
  }
}

async function finish({ credits, files }: ImageDeps, task: EndedTask, { userId }: Caller) {
  const { images, inference_seconds, seed, has_nsfw_concepts, prompt } = resultOf(task)
  const addressed = await Promise.all(
    images.map(async ({ file_id, sha256: digest, width, height, content_type }) => ({
      url: await files.urlOf({ id: file_id, sha256: digest }),
      width,
      height,
      content_type,
    })),
  )
  return {
    images: addressed,
    timings: { inference: inference_seconds },
    seed,
    has_nsfw_concepts,
    prompt,
    credits_available: await credits.available(userId),
  }
}

type StoreOptions = { files: Files; userId: string; taskId: string }

const storeAll = (
  loaded: readonly LoadedImage[],
  { files, userId, taskId }: StoreOptions,
): Promise<Result['images']> =>
  Promise.all(
    loaded.map(async ({ bytes, width, height, contentType }, at) => {
      const extension = contentType === 'image/png' ? 'png' : 'jpg'
      const file = await files.put(
        userId,
        `image-${taskId.slice(0, 8)}-${at + 1}.${extension}`,
        contentType,
        bytes,
      )
      return { file_id: file.id, sha256: file.sha256, width, height, content_type: contentType }
    }),
  )

const payerOf =
  ({ db, clock }: Pick<ImageDeps, 'db' | 'clock'>) =>
  async (input: Input, caller: Caller, key: string | undefined): Promise<Payer> => {
    const { backend } = caller
    if (!backend) throw new Fault('unauthorized', 'Images need a backend key in X-BACKEND-KEY')
    const payer = await store.payerOf(db, backend.accountId ?? input.user)
    if (!payer)
      throw new Fault(
        'not_found',
        'This key knows no user of this id: `user` is the `user_id` of `user_show`',
      )
    if (payer.suspended_at) throw new Fault('suspended', 'The account that pays is suspended')
    const userId = payer.id
    const asUser: Caller = { userId, agentId: payer.agent_id, scheme: 'backend', scopes: new Set(), backend }
    if (key === undefined) return { caller: asUser }
    const owner = await store.claimKey(db, { backendId: backend.id, key, userId, now: clock.now() })
    if (owner !== userId)
      throw new Fault(
        'idempotency_conflict',
        'This idempotency key was used for another user: repeat that request unchanged, or use a new key',
      )
    // This idempotency key contains a space, so it collides with no key of the user.
    return { caller: asUser, key: `backend ${sha256(`${backend.id} ${key}`)}` }
  }

function resultOf({ status, result, error }: EndedTask): Result {
  if (status === 'completed' && result) return result as Result
  const { code, message } = { code: 'unavailable', message: 'The images were not made', ...error }
  const known = Object.hasOwn(faults, String(code)) ? (String(code) as FaultCode) : 'conflict'
  const sentence = String(message).replace(/[.\s]+$/, '')
  const details = (error?.details ?? {}) as Record<string, unknown>
  throw new Fault(known, `${sentence}. No credit was taken; try again under a new idempotency key`, {
    extras: details,
  })
}

export const imageBytesMax = fileBytesMax
