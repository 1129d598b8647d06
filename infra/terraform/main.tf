# A service on ECS, each of whose tasks holds a node id: bucket, rights, log, task definition, service;
# alarms, autoscaling and a scheduled job where variables ask for them.
# The VPC and the ECS cluster exist already. The image has nodelease in its PATH.
#   module "orders" {
#     source  = "./nodelease"
#     name    = "orders"
#     cluster = "my-cluster"
#     vpc     = "vpc-0a1b2c3d"
#     subnets = ["subnet-0a1b2c3d", "subnet-4e5f6a7b"]
#     image   = "111122223333.dkr.ecr.eu-central-1.amazonaws.com/orders:0.1.0"
#   }

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
  }
}

variable "name" {
  type        = string
  description = "Name of the service: at most 27 lower-case letters, digits and hyphens."

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,26}$", var.name))
    error_message = "A name has 1 to 27 lower-case letters, digits and hyphens, and begins with a letter."
  }
}

variable "cluster" {
  type        = string
  description = "Name of the ECS cluster."
}

variable "vpc" {
  type        = string
  description = "Give it a gateway endpoint of S3. Otherwise every renewal passes the NAT gateway."
}

variable "subnets" {
  type = list(string)
}

variable "assign_public_ip" {
  type        = bool
  default     = false
  description = "true in public subnets. Without it, tasks there reach neither the registry nor S3."
}

variable "image" {
  type        = string
  description = "An image with nodelease in its PATH, by a tag that does not move."
}

variable "command" {
  type        = list(string)
  default     = ["node", "service.js"]
  description = "What runs with NODE_ID in its environment."
}

variable "prefix" {
  type        = string
  default     = "leases"
  description = "The leases are the objects below this prefix."

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", var.prefix))
    error_message = "A prefix has letters, digits, dots, hyphens and underscores, with single slashes."
  }
}

variable "bucket" {
  type        = string
  default     = ""
  description = "An existing bucket, whose policy you keep. Empty for a new one, where versions begin at 1."
}

variable "kms_key" {
  type        = string
  default     = ""
  description = "ARN of the KMS key that encrypts the bucket. Empty for the keys of S3. Objects stay under the key that they were written with, so keep it."
}

variable "lease_cluster" {
  type        = string
  default     = "any"
  description = "After the first deployment, existing. A wrong bucket or prefix is an error then."

  validation {
    condition     = contains(["any", "existing"], var.lease_cluster)
    error_message = "lease_cluster is any or existing."
  }
}

variable "lease_cluster_name" {
  type        = string
  default     = ""
  description = "The first name, if it was another one and this module takes its bucket and prefix."
}

variable "nodes" {
  type        = number
  default     = 4
  description = "How many node ids. The first task creates them. After nodelease scale, change it here, too."
}

# Of a throttled CPU, a task may stand still for seconds.
variable "duration" {
  type        = number
  default     = 30
  description = "How many seconds a lease lasts without renewal, in a new cluster. Later, nodelease tune changes it."
}

variable "stop_timeout" {
  type        = number
  default     = 40
  description = "Seconds from SIGTERM to SIGKILL. At least 10 more than duration, and than the command takes to end."

  validation {
    condition     = var.stop_timeout <= 120
    error_message = "Fargate waits for 120 seconds at most."
  }
}

variable "desired_count" {
  type        = number
  default     = 3
  description = "How many tasks run. At most nodes."
}

# With a spare node id, new tasks start first: 134 % of 3 tasks are 4 (ECS rounds down), for 4 node ids. 200 for
# a single task, 150 for two.
# Without one, an old task stops first: maximum_percent = 100, minimum_healthy_percent = 66 for 3 tasks.
variable "maximum_percent" {
  type        = number
  default     = 134
  description = "At most nodes / desired_count, in percent, and at least one task more. 100 if every node id is in use."
}

variable "minimum_healthy_percent" {
  type        = number
  default     = 100
  description = "Below 100 if every node id is in use."
}

# Deployments stop old tasks first, then: no number of tasks leaves a spare node id.
variable "autoscale_cpu" {
  type        = number
  default     = 0
  description = "Percent of CPU to scale for, from desired_count (at least 2) to nodes. 0 for a fixed count."
}

variable "alarm_topic" {
  type        = string
  default     = ""
  description = "ARN of the SNS topic that alarms notify. Empty for no alarms."
}

variable "job_command" {
  type        = list(string)
  default     = []
  description = "A job that nodelease once runs, in a task of its own. Empty for none."
}

variable "job_every" {
  type        = string
  default     = "1d"
  description = "The period in which the job runs at most once."
}

variable "job_schedule" {
  type        = string
  default     = "rate(1 hour)"
  description = "When a task starts, to run the job if it is due."
}

data "aws_region" "current" {}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_ecs_cluster" "this" {
  cluster_name = var.cluster
}

locals {
  bucket     = var.bucket == "" ? one(aws_s3_bucket.leases[*].id) : var.bucket
  bucket_arn = "arn:${data.aws_partition.current.partition}:s3:::${local.bucket}"

  maximum_percent         = var.autoscale_cpu > 0 ? 100 : var.maximum_percent
  minimum_healthy_percent = var.autoscale_cpu > 0 ? 50 : var.minimum_healthy_percent
}

# It and its policy stay: without it, versions (fencing tokens) would start at 1 again. Before terraform
# destroy, remove every aws_s3_bucket… from the state. The next deployment takes it as the variable bucket.
# Versioning is off: every renewal would leave an old version behind.
resource "aws_s3_bucket" "leases" {
  count         = var.bucket == "" ? 1 : 0
  bucket_prefix = "${var.name}-leases-"

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_public_access_block" "leases" {
  count                   = var.bucket == "" ? 1 : 0
  bucket                  = local.bucket
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "leases" {
  count  = var.bucket == "" ? 1 : 0
  bucket = local.bucket

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "leases" {
  count  = var.bucket == "" ? 1 : 0
  bucket = local.bucket

  rule {
    id     = "scratch-objects"
    status = "Enabled"

    filter {
      prefix = "${var.prefix}/probe-"
    }

    expiration {
      days = 1
    }
  }

  rule {
    id     = "scratch-objects-of-locks"
    status = "Enabled"

    filter {
      prefix = "${var.prefix}/locks/probe-"
    }

    expiration {
      days = 1
    }
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "leases" {
  count  = var.bucket == "" && var.kms_key != "" ? 1 : 0
  bucket = local.bucket

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = var.kms_key
    }
  }
}

# Refuses, to every user, what would break the leases. For repairs, remove the last two statements.
data "aws_iam_policy_document" "bucket" {
  statement {
    sid       = "OnlyTls"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.bucket_arn, "${local.bucket_arn}/*"]

    principals {
      type        = "AWS"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }

  statement {
    sid       = "OnlyRecentTls"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.bucket_arn, "${local.bucket_arn}/*"]

    principals {
      type        = "AWS"
      identifiers = ["*"]
    }

    condition {
      test     = "NumericLessThan"
      variable = "s3:TlsVersion"
      values   = ["1.2"]
    }
  }

  statement {
    sid       = "OnlyConditionalWrites"
    effect    = "Deny"
    actions   = ["s3:PutObject"]
    resources = ["${local.bucket_arn}/${var.prefix}/*"]

    principals {
      type        = "AWS"
      identifiers = ["*"]
    }

    condition {
      test     = "Null"
      variable = "s3:if-none-match"
      values   = ["true"]
    }

    condition {
      test     = "Null"
      variable = "s3:if-match"
      values   = ["true"]
    }

    condition {
      test     = "Bool"
      variable = "s3:ObjectCreationOperation"
      values   = ["true"]
    }
  }

  statement {
    sid     = "LeasesAreNeverDeleted"
    effect  = "Deny"
    actions = ["s3:DeleteObject", "s3:DeleteObjectVersion"]
    resources = [
      "${local.bucket_arn}/${var.prefix}/cluster.json",
      "${local.bucket_arn}/${var.prefix}/shards.json",
      "${local.bucket_arn}/${var.prefix}/locks/cluster.json",
      "${local.bucket_arn}/${var.prefix}/locks/*/*",
      "${local.bucket_arn}/${var.prefix}/0*",
      "${local.bucket_arn}/${var.prefix}/1*",
      "${local.bucket_arn}/${var.prefix}/2*",
      "${local.bucket_arn}/${var.prefix}/3*",
      "${local.bucket_arn}/${var.prefix}/4*",
      "${local.bucket_arn}/${var.prefix}/5*",
      "${local.bucket_arn}/${var.prefix}/6*",
      "${local.bucket_arn}/${var.prefix}/7*",
      "${local.bucket_arn}/${var.prefix}/8*",
      "${local.bucket_arn}/${var.prefix}/9*",
    ]

    principals {
      type        = "AWS"
      identifiers = ["*"]
    }
  }
}

resource "aws_s3_bucket_policy" "leases" {
  count  = var.bucket == "" ? 1 : 0
  bucket = local.bucket
  policy = data.aws_iam_policy_document.bucket.json

  lifecycle {
    prevent_destroy = true
  }
}

data "aws_iam_policy_document" "task" {
  # A pattern. With the bare prefix, S3 answers 403 to a read of what does not exist.
  statement {
    sid       = "ListLeases"
    actions   = ["s3:ListBucket"]
    resources = [local.bucket_arn]

    condition {
      test     = "StringLike"
      variable = "s3:prefix"
      values   = ["${var.prefix}/*"]
    }
  }

  statement {
    sid       = "ReadLeases"
    actions   = ["s3:GetObject"]
    resources = ["${local.bucket_arn}/${var.prefix}/*"]
  }

  statement {
    sid       = "WriteLeases"
    actions   = ["s3:PutObject"]
    resources = ["${local.bucket_arn}/${var.prefix}/*"]
  }

  # For the first task, which probes the bucket.
  statement {
    sid       = "RemoveScratchObjects"
    actions   = ["s3:DeleteObject"]
    resources = ["${local.bucket_arn}/${var.prefix}/probe-*", "${local.bucket_arn}/${var.prefix}/locks/probe-*"]
  }

  # For NODELEASE_ECS_PROTECT.
  statement {
    sid       = "ProtectTasks"
    actions   = ["ecs:GetTaskProtection", "ecs:UpdateTaskProtection"]
    resources = ["arn:${data.aws_partition.current.partition}:ecs:${data.aws_region.current.region}:${data.aws_caller_identity.current.account_id}:task/${var.cluster}/*"]
  }

  dynamic "statement" {
    for_each = var.kms_key == "" ? [] : [var.kms_key]

    content {
      sid       = "UseKey"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [statement.value]
    }
  }
}

data "aws_iam_policy_document" "ecs_tasks" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ecs-tasks.amazonaws.com"]
    }
  }
}

# What the service itself may do: attach its own policies to the output task_role.
resource "aws_iam_role" "task" {
  name_prefix        = "${var.name}-task-"
  assume_role_policy = data.aws_iam_policy_document.ecs_tasks.json
}

resource "aws_iam_role_policy" "leases" {
  name   = "leases"
  role   = aws_iam_role.task.id
  policy = data.aws_iam_policy_document.task.json
}

# What ECS does for the task: it pulls the image and writes the log.
resource "aws_iam_role" "execution" {
  name_prefix        = "${var.name}-execution-"
  assume_role_policy = data.aws_iam_policy_document.ecs_tasks.json
}

resource "aws_iam_role_policy_attachment" "execution" {
  role       = aws_iam_role.execution.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/service-role/AmazonECSTaskExecutionRolePolicy"
}

resource "aws_cloudwatch_log_group" "this" {
  name_prefix       = "${var.name}-"
  retention_in_days = 30
  skip_destroy      = true
}

locals {
  container = {
    name       = "nodelease"
    image      = var.image
    essential  = true
    entryPoint = ["nodelease", "run", "--"]
    command    = var.command
    environment = [
      { name = "NODELEASE_STORE", value = "s3://${local.bucket}/${var.prefix}" },
      { name = "NODELEASE_CLUSTER", value = var.lease_cluster },
      # Another service in the same prefix is refused.
      { name = "NODELEASE_CLUSTER_NAME", value = coalesce(var.lease_cluster_name, var.name) },
      { name = "NODELEASE_NODES", value = tostring(var.nodes) },
      { name = "NODELEASE_DURATION", value = "${var.duration}s" },
      { name = "NODELEASE_HTTP", value = "127.0.0.1:7070" },
      { name = "NODELEASE_LOG_FORMAT", value = "json" },
    ]
    # Healthy while the lease is valid. A task may wait for the node id of a killed one.
    healthCheck = {
      command     = ["CMD", "nodelease", "health"]
      interval    = 10
      timeout     = 5
      retries     = 3
      startPeriod = 180
    }
    stopTimeout            = var.stop_timeout
    user                   = "1000"
    readonlyRootFilesystem = true
    # nodelease is process 1: no init process is needed.
    linuxParameters = { capabilities = { drop = ["ALL"] }, initProcessEnabled = false }
    # Non-blocking: a program that waits for its log driver stands still.
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-group         = aws_cloudwatch_log_group.this.name
        awslogs-region        = data.aws_region.current.region
        awslogs-stream-prefix = "task"
        mode                  = "non-blocking"
        max-buffer-size       = "4m"
      }
    }
  }
}

resource "aws_ecs_task_definition" "this" {
  family                   = var.name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = "256"
  memory                   = "512"
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.task.arn
  container_definitions    = jsonencode([local.container])

  runtime_platform {
    cpu_architecture        = "X86_64"
    operating_system_family = "LINUX"
  }
}

resource "aws_security_group" "this" {
  name_prefix = "${var.name}-"
  description = "The tasks; no way in"
  vpc_id      = var.vpc

  egress {
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_ecs_service" "this" {
  name             = var.name
  cluster          = data.aws_ecs_cluster.this.arn
  task_definition  = aws_ecs_task_definition.this.arn
  launch_type      = "FARGATE"
  platform_version = "1.4.0"
  # With autoscaling, add ignore_changes = [desired_count] to the lifecycle block: Terraform knows no condition there.
  desired_count                      = var.desired_count
  deployment_maximum_percent         = local.maximum_percent
  deployment_minimum_healthy_percent = local.minimum_healthy_percent
  # Rebalancing starts a task before it stops another one, so it needs a node id for it.
  availability_zone_rebalancing = local.maximum_percent > 100 ? "ENABLED" : "DISABLED"

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  network_configuration {
    subnets          = var.subnets
    security_groups  = [aws_security_group.this.id]
    assign_public_ip = var.assign_public_ip
  }

  lifecycle {
    precondition {
      condition     = floor(var.desired_count * local.maximum_percent / 100) <= var.nodes
      error_message = "desired_count at maximum_percent is more tasks than nodes: a deployment would wait for node ids that the old tasks hold."
    }

    precondition {
      condition     = var.desired_count == 0 || floor(var.desired_count * local.maximum_percent / 100) > var.desired_count || ceil(var.desired_count * local.minimum_healthy_percent / 100) < var.desired_count
      error_message = "maximum_percent and minimum_healthy_percent let a deployment neither start a task first nor stop one: ECS rounds down the one, and up the other."
    }

    precondition {
      condition     = var.stop_timeout >= var.duration + 10
      error_message = "stop_timeout is at least 10 more than duration: nodelease ends by itself, then, while the store is out of reach."
    }
  }

  # Without their rights, the first tasks would fail.
  depends_on = [aws_iam_role_policy.leases, aws_iam_role_policy_attachment.execution]
}

# Never more tasks than node ids. With NODELEASE_ECS_PROTECT=busy, no busy task is stopped.
resource "aws_appautoscaling_target" "this" {
  count              = var.autoscale_cpu > 0 ? 1 : 0
  service_namespace  = "ecs"
  scalable_dimension = "ecs:service:DesiredCount"
  resource_id        = "service/${var.cluster}/${aws_ecs_service.this.name}"
  min_capacity       = var.desired_count
  max_capacity       = var.nodes

  lifecycle {
    precondition {
      condition     = var.desired_count > 1
      error_message = "desired_count is at least 2 with autoscale_cpu. Half of one task is none that a deployment may stop."
    }
  }
}

resource "aws_appautoscaling_policy" "cpu" {
  count              = var.autoscale_cpu > 0 ? 1 : 0
  name               = "cpu"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.this[0].service_namespace
  scalable_dimension = aws_appautoscaling_target.this[0].scalable_dimension
  resource_id        = aws_appautoscaling_target.this[0].resource_id

  target_tracking_scaling_policy_configuration {
    target_value = var.autoscale_cpu

    predefined_metric_specification {
      predefined_metric_type = "ECSServiceAverageCPUUtilization"
    }
  }
}

# The job: EventBridge may start a task late, twice or not at all. nodelease once runs the job once a period.
locals {
  jobs = length(var.job_command) > 0 ? 1 : 0
  job = merge({ for name, value in local.container : name => value if name != "healthCheck" }, {
    entryPoint = ["nodelease", "once", "job", "--every", var.job_every, "--"]
    command    = var.job_command
    environment = [
      for each in local.container.environment : each
      if contains(["NODELEASE_STORE", "NODELEASE_DURATION", "NODELEASE_LOG_FORMAT"], each.name)
    ]
  })
}

resource "aws_ecs_task_definition" "job" {
  count                    = local.jobs
  family                   = "${var.name}-job"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = "256"
  memory                   = "512"
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.task.arn
  container_definitions    = jsonencode([local.job])

  runtime_platform {
    cpu_architecture        = "X86_64"
    operating_system_family = "LINUX"
  }
}

data "aws_iam_policy_document" "scheduler" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["scheduler.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "job" {
  count = local.jobs

  statement {
    actions   = ["ecs:RunTask"]
    resources = [aws_ecs_task_definition.job[0].arn]
  }

  statement {
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.execution.arn, aws_iam_role.task.arn]
  }
}

resource "aws_iam_role" "job" {
  count              = local.jobs
  name_prefix        = "${var.name}-job-"
  assume_role_policy = data.aws_iam_policy_document.scheduler.json
}

resource "aws_iam_role_policy" "job" {
  count  = local.jobs
  name   = "start"
  role   = aws_iam_role.job[0].id
  policy = data.aws_iam_policy_document.job[0].json
}

resource "aws_scheduler_schedule" "job" {
  count               = local.jobs
  name                = "${var.name}-job"
  schedule_expression = var.job_schedule

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = data.aws_ecs_cluster.this.arn
    role_arn = aws_iam_role.job[0].arn

    ecs_parameters {
      task_definition_arn = aws_ecs_task_definition.job[0].arn
      launch_type         = "FARGATE"
      platform_version    = "1.4.0"

      network_configuration {
        subnets          = var.subnets
        security_groups  = [aws_security_group.this.id]
        assign_public_ip = var.assign_public_ip
      }
    }
  }
}

# Alarms: what they mean and what to do is in the runbook. These count lines of nodelease's log.
locals {
  log_alarms = {
    LeaseLost = {
      events    = ["lost"]
      period    = 60
      threshold = 1
      periods   = 1
      text      = "A task lost its node id against its will and was stopped: the store was out of reach, the task was paused, or its id was taken."
    }
    StoreFailures = {
      events    = ["renewal-failed", "store-failed"]
      period    = 300
      threshold = 3
      periods   = 1
      text      = "Requests to the store fail. Renewals are tried again until the lease runs out: look into it before ids are lost."
    }
    NoFreeNodeId = {
      events    = ["waiting"]
      period    = 300
      threshold = 1
      periods   = 3
      text      = "Tasks have had to wait for a node id for a quarter of an hour: there are too few, or tasks that were replaced do not end."
    }
    LeaseDamaged = {
      events    = ["damaged"]
      period    = 300
      threshold = 1
      periods   = 1
      text      = "A lease object is missing or cannot be read: its id is not given out until `nodelease init --repair` has restored it."
    }
  }
  # Of refusals the share of all requests: a lost race is refused, too.
  s3_alarms = {
    StoreServerErrors = {
      metric    = "5xxErrors"
      statistic = "Sum"
      threshold = 5
      periods   = 1
      text      = "S3 answers with server errors."
    }
    StoreRefusals = {
      metric    = "4xxErrors"
      statistic = "Average"
      threshold = 0.2
      periods   = 3
      text      = "S3 refuses more than a fifth of all requests: the permissions have changed, or tasks keep racing for too few ids."
    }
  }
}

# A wait for a lock is none for a node id: that of the job, or one in the command.
resource "aws_cloudwatch_log_metric_filter" "this" {
  for_each       = var.alarm_topic == "" ? {} : local.log_alarms
  name           = each.key
  log_group_name = aws_cloudwatch_log_group.this.name
  pattern        = "{ ($.name = \"nodelease\") && (${join(" || ", [for event in each.value.events : "($.event = \"${event}\")"])}${each.key == "NoFreeNodeId" ? " && ($.lock NOT EXISTS)" : ""}) }"

  metric_transformation {
    namespace = "nodelease/${var.name}"
    name      = each.key
    value     = "1"
  }
}

resource "aws_cloudwatch_metric_alarm" "log" {
  for_each            = var.alarm_topic == "" ? {} : local.log_alarms
  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.text
  namespace           = "nodelease/${var.name}"
  metric_name         = each.key
  statistic           = "Sum"
  period              = each.value.period
  evaluation_periods  = each.value.periods
  threshold           = each.value.threshold
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = [var.alarm_topic]
  ok_actions          = [var.alarm_topic]
}

# They cost some dollars a month.
resource "aws_s3_bucket_metric" "leases" {
  count  = var.bucket == "" && var.alarm_topic != "" ? 1 : 0
  bucket = local.bucket
  name   = "leases"

  filter {
    prefix = "${var.prefix}/"
  }
}

resource "aws_cloudwatch_metric_alarm" "s3" {
  for_each            = var.bucket == "" && var.alarm_topic != "" ? local.s3_alarms : {}
  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.text
  namespace           = "AWS/S3"
  metric_name         = each.value.metric
  dimensions          = { BucketName = local.bucket, FilterId = "leases" }
  statistic           = each.value.statistic
  period              = 300
  evaluation_periods  = each.value.periods
  threshold           = each.value.threshold
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = [var.alarm_topic]
  ok_actions          = [var.alarm_topic]
}

# Percent of the tasks, and less than 0 without any: a deployment leaves the minimum. Needs Container Insights.
resource "aws_cloudwatch_metric_alarm" "tasks" {
  count               = var.alarm_topic == "" ? 0 : 1
  alarm_name          = "${var.name}-TooFewTasks"
  alarm_description   = "Fewer tasks run than even a deployment would leave. Needs Container Insights on the cluster."
  evaluation_periods  = 5
  threshold           = local.minimum_healthy_percent
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  alarm_actions       = [var.alarm_topic]
  ok_actions          = [var.alarm_topic]

  metric_query {
    id          = "percent"
    expression  = "100 * running / desired - (running < 1)"
    return_data = true
  }

  dynamic "metric_query" {
    for_each = { running = "RunningTaskCount", desired = "DesiredTaskCount" }

    content {
      id = metric_query.key

      metric {
        namespace   = "ECS/ContainerInsights"
        metric_name = metric_query.value
        stat        = "Minimum"
        period      = 60
        dimensions  = { ClusterName = var.cluster, ServiceName = aws_ecs_service.this.name }
      }
    }
  }
}

output "store" {
  value       = "s3://${local.bucket}/${var.prefix}"
  description = "nodelease status --store …"
}

output "task_role" {
  value = aws_iam_role.task.name
}
