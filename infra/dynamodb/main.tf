# A table for leases, and what tasks need for the leases of one prefix. Attach the policy to their role.
#   module "leases" {
#     source = "./leases"
#     name   = "leases"
#     prefix = "orders"
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
  description = "Name of the table, and of the policy."
}

variable "prefix" {
  type        = string
  description = "The leases are the items with this partition key."
}

# No time to live, and no replicas with eventual consistency: both break leases.
resource "aws_dynamodb_table" "leases" {
  name                        = var.name
  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = true
  hash_key                    = "prefix"
  range_key                   = "object"

  attribute {
    name = "prefix"
    type = "S"
  }

  attribute {
    name = "object"
    type = "S"
  }

  # Without it, versions (fencing tokens) would start at 1 again.
  lifecycle {
    prevent_destroy = true
  }
}

data "aws_iam_policy_document" "access" {
  statement {
    sid       = "HoldLeases"
    actions   = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"]
    resources = [aws_dynamodb_table.leases.arn]

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:LeadingKeys"
      values   = [var.prefix, "${var.prefix}/locks"]
    }
  }

  # For the first start, init and doctor. IAM cannot limit it to the items that begin with probe-.
  statement {
    sid       = "RemoveScratchItems"
    actions   = ["dynamodb:DeleteItem"]
    resources = [aws_dynamodb_table.leases.arn]

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:LeadingKeys"
      values   = [var.prefix, "${var.prefix}/locks"]
    }
  }

  # Leases ask for the id of the table, and doctor for its time to live.
  statement {
    sid       = "KnowTable"
    actions   = ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"]
    resources = [aws_dynamodb_table.leases.arn]
  }
}

resource "aws_iam_policy" "access" {
  name   = "${var.name}-leases"
  policy = data.aws_iam_policy_document.access.json
}

output "store" {
  value = "dynamodb://${aws_dynamodb_table.leases.name}/${var.prefix}"
}

output "policy" {
  value = aws_iam_policy.access.arn
}
