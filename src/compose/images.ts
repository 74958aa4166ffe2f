import { dayMs } from '#durable/upkeep/retention.ts'
import { createFiles } from '#engines/files/files.ts'
import { fileDeletions } from '#engines/files/retention.ts'
import type { Credits } from '#features/credits/credits.ts'
import { authenticateBackend } from '#features/image/backends.ts'
import { image, imageBytesMax } from '#features/image/image.ts'
import { imageDeletions } from '#features/image/retention.ts'
import type { Net } from '#kernel/wire/net.ts'
import type { GuardedFetch } from '#upstreams/guarded-fetch/guarded-fetch.ts'
import { images as imageService } from '#upstreams/images/images.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import type { UpstreamUrls } from './upstream-urls.ts'

type ImagesDeps = {
  core: Core
  urls: Pick<UpstreamUrls, 'images'>
  net: Net
  custody: Pick<Custody, 'keyEncryptionKeys'>
  credits: Credits
  imageFiles: GuardedFetch
}

/** Files of users, the keys of backends and, where a service makes them, images. */
export function openImages({ core, urls, net, custody, credits, imageFiles }: ImagesDeps) {
  const { config, db, clock, random, baseUrl, taskEngine } = core
  const { keyEncryptionKeys } = custody
  const files = createFiles({ db, keyEncryptionKeys, clock, random, baseUrl })
  const operations = urls.images
    ? image({
        db,
        ledger: taskEngine.ledger,
        credits,
        files,
        images: imageService({
          url: urls.images,
          app: config.IMAGES_APP,
          key: config.IMAGES_KEY,
          net,
          fetchPublic: imageFiles.fetch,
          imageBytesMax,
        }),
        clock,
        random,
      })
    : []
  return {
    files,
    authenticateBackend: authenticateBackend({ db, clock }),
    operations,
    deletions: [
      ...fileDeletions(config.FILE_RETENTION_DAYS * dayMs),
      ...imageDeletions(config.REPLY_RETENTION_DAYS * dayMs),
    ],
  }
}
