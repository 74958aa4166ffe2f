import { randomBytes } from 'node:crypto'

/** The input of a text-to-image app, and its errors in the form of FastAPI. */

export type ImageInput = {
  prompt: string
  width: number
  height: number
  steps: number
  seed: number
  count: number
  isChecked: boolean
}
export type InputError = { loc: (string | number)[]; msg: string; type: string; input?: unknown }

const sizes: Readonly<Record<string, readonly [number, number]>> = {
  square_hd: [1_024, 1_024],
  square: [512, 512],
  portrait_4_3: [768, 1_024],
  portrait_16_9: [576, 1_024],
  landscape_4_3: [1_024, 768],
  landscape_16_9: [1_024, 576],
}
/** The published bound is 14,142; beyond this the memory of one picture is a gibibyte. */
const sideMax = 2_048
const seedBytes = 4

type Fields = Record<string, unknown>
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const readInput = (body: unknown): { input: ImageInput } | { errors: InputError[] } => {
  if (!isObject(body))
    return { errors: [{ loc: ['body'], msg: 'Input should be a valid dictionary', type: 'dict_type' }] }
  const errors: InputError[] = []
  const integer = (
    name: string,
    given: unknown,
    { min, max, initial }: { min: number; max: number; initial: number },
  ) => {
    if (given === undefined || given === null) return initial
    const isOne = typeof given === 'number' && Number.isInteger(given)
    if (isOne && given >= min && given <= max) return given
    const [msg, type] = !isOne
      ? ['Input should be a valid integer', 'int_type']
      : given < min
        ? [`Input should be greater than or equal to ${min}`, 'greater_than_equal']
        : [`Input should be less than or equal to ${max}`, 'less_than_equal']
    errors.push({ loc: ['body', ...name.split('.')], msg, type, input: given })
    return initial
  }
  const { prompt } = body
  if (prompt === undefined) errors.push({ loc: ['body', 'prompt'], msg: 'Field required', type: 'missing' })
  else if (typeof prompt !== 'string')
    errors.push({
      loc: ['body', 'prompt'],
      msg: 'Input should be a valid string',
      type: 'string_type',
      input: prompt,
    })
  const given = body.image_size ?? 'landscape_4_3'
  let [width, height] = typeof given === 'string' ? (sizes[given] ?? [0, 0]) : [0, 0]
  if (isObject(given)) {
    width = integer('image_size.width', given.width, { min: 1, max: sideMax, initial: 512 })
    height = integer('image_size.height', given.height, { min: 1, max: sideMax, initial: 512 })
  } else if (width === 0)
    errors.push({
      loc: ['body', 'image_size'],
      msg: `Input should be ${Object.keys(sizes).join(', ')}`,
      type: 'literal_error',
      input: given,
    })
  const input: ImageInput = {
    prompt: String(prompt),
    width,
    height,
    steps: integer('num_inference_steps', body.num_inference_steps, { min: 1, max: 50, initial: 4 }),
    seed: integer('seed', body.seed, {
      min: 0,
      max: Number.MAX_SAFE_INTEGER,
      initial: randomBytes(seedBytes).readUInt32BE(),
    }),
    count: integer('num_images', body.num_images, { min: 1, max: 4, initial: 1 }),
    isChecked: body.enable_safety_checker !== false,
  }
  return errors.length > 0 ? { errors } : { input }
}
